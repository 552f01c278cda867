"""AutoLM: the best language model of a text that some minutes of training make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from nplm.base.atomic import fit_copy
from nplm.base.checks import check_ids
from nplm.base.estimators.bases import Whole
from nplm.base.estimators.scored_texts import context_of_texts, texts_log_prob
from nplm.base.fitted import Fitted, Item, invalid_item
from nplm.models.auto import choosing, fitting, training_text
from nplm.models.auto.auto_recipe import AutoRecipe
from nplm.models.auto.describing import described, hint, shown
from nplm.models.auto.texts import AutoText, RunningWordScorer
from nplm.models.classes.class_lm import ClassLM
from nplm.models.training.checkpoint import check_same_fit, fingerprint
from nplm.models.training.folder_lock import FolderLock
from nplm.text.codecs import Codec, codec_of, encoded
from nplm.text.lm.fitted_text import fitted_text
from nplm.text.lm.text_fitting import boundary_of
from nplm.text.lm.text_lm import TextLM
from nplm.text.lm.window_scorer import WindowWordScorer
from nplm.text.subwords.subwords import Subwords
from nplm.text.vocabulary import Vocabulary

FIT_PARAMS = {"checkpoint", "before", "y_val"}


class AutoLM(TextLM):
    """The best language model that some minutes of training make of a text.

    It chooses by the numbers of words, types and documents, by the time, and by a
    measurement of this machine: words or subwords; what is held out; a network with its
    size, training and dropout; Kneser-Ney and n-grams of word classes. The network
    trains until the time is over, and its learning rate falls to 0 at that time. All
    models are mixed, by weights learned on held-out text. Where the text or the time is
    too small for a network, the n-grams are the model.

    Parameters
    ----------
    minutes : float, default=3
        Time of a fit by the clock, from its beginning to the fitted model. A search
        over 5 folds takes five times as long, `LMClassifier` as many times as it has
        classes, and `LMDetector` five or ten times with few documents. A fit ends
        earlier when the held-out text stops improving.
    running_text : bool, default=False
        Whether the documents are one text in its order, such as the lines of a book.
        Then the context of a document's first word is the document before it, in
        training and in scoring, and each document ends with a boundary.
    adapt : bool, default=False
        Whether to mix in a cache, for which the last 500 words of the document, or of
        the running text, are probable. It needs held-out text. A score then depends on
        the words just read: compare it only with scores of models that adapt, too.
    settings : dict, optional
        Choices that are fixed by hand: ``members`` (of "ngrams", "classes" and
        "network"), ``ngram_order``, ``n_classes``, ``spelling``, ``epochs`` (passes of
        the network over the text, at most), and any parameter of `NeuralLM`, such as
        ``{"n_hidden": 512, "dropout": 0.3}``.
    recipe : AutoRecipe, optional
        The ``recipe_`` of another fit. The fit repeats it without reading a clock, and
        with the same text, `n_jobs` and machine makes the same bits. It has all choices
        but `tokenizer`, `vocabulary`, `boundary` and `n_words`.
    tokenizer, vocabulary, boundary
        As of `TextLM`. With "auto", text with too many types is split into subwords
        if the package ``tokenizers`` is installed and there is time; else its rarest
        words are ``<unk>``.
    n_words : int or None, default=None
        Size of the vocabulary where documents are ids; by default the largest id plus
        one.
    memory : int or None, default=2_000_000_000
        Bytes that a fit may take. N-grams that do not fit are estimated on disk, and
        mapped from there; a network that does not fit is smaller, or left out. None is
        no limit.
    n_jobs : int or None, default=None
        Number of threads; -1 is the number of cores.
    random_state : int, RandomState instance or None, default=None
        Seed of the network.
    verbose : int, default=0
        1 prints what the fit will do, and lines of its progress; 2 shows a bar.

    Attributes
    ----------
    recipe_ : AutoRecipe
        All choices, and what they came to. Its repr makes it again.
    scores_ : dict of str to float
        Held-out perplexity of each member, and of the mixture; empty without held-out
        text.
    n_tokens_ : int
        Number of tokens of training, ends of documents too.
    estimator_ : MixtureLM, or the only member
    tokenizer_, vocabulary_, n_words_, n_context_, boundary_
        As of `TextLM`.

    See Also
    --------
    TextLM : A text model of an estimator that you choose.

    Examples
    --------
    >>> from nplm import AutoLM
    >>> texts = ["a rose is a rose", "is a rose a rose"] * 10
    >>> lm = AutoLM(minutes=0.05, random_state=0).fit(texts)
    >>> lm.recipe_.members
    ('ngrams',)
    >>> lm.next_words("a rose is", k=1)[0]
    ['a']
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "minutes": [Interval(Real, 0, None, closed="neither")],
        "running_text": ["boolean"],
        "adapt": ["boolean"],
        "settings": [dict, None],
        "recipe": [AutoRecipe, None],
        "n_words": [Whole(1), None],
        "memory": [Whole(1), None],
        "n_jobs": [int, np.integer, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        **{
            name: TextLM._parameter_constraints[name]
            for name in ("tokenizer", "vocabulary", "boundary")
        },
    }
    predict_boundary = True
    handle_unknown = "symbol"
    recipe_: AutoRecipe

    def __init__(
        self,
        minutes: float = 3.0,
        *,
        running_text: bool = False,
        adapt: bool = False,
        settings: dict[str, Any] | None = None,
        recipe: AutoRecipe | None = None,
        tokenizer: Any = "auto",
        vocabulary: Vocabulary | str | None = "auto",
        boundary: int | str = "auto",
        n_words: int | None = None,
        memory: int | None = 2_000_000_000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.minutes = minutes
        self.running_text = running_text
        self.adapt = adapt
        self.settings = settings
        self.recipe = recipe
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary
        self.boundary = boundary
        self.n_words = n_words
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def estimator(self) -> Any:
        """The model itself, with the parameters `n_words` and `verbose`."""
        return self

    @classmethod
    def from_model(cls, *args: object, **kwargs: object) -> NoReturn:
        """Raise TypeError: `TextLM.from_model` makes a text model of a fitted one."""
        raise TypeError("AutoLM makes its own models: use TextLM.from_model.")

    def partial_fit(self, *args: object, **kwargs: object) -> NoReturn:
        """Raise TypeError: a fit has a time, and all documents."""
        raise TypeError("AutoLM has no partial_fit: fit all documents at once.")

    def fit(
        self, X: Iterable[Any], y: Any = None, *, X_val: Any = None, **fit_params: Any
    ) -> Self:
        """Choose the models, train them in the given time, and mix them.

        Parameters
        ----------
        X : iterable of str, of sequence of hashable, or of array-like of int
            Documents, as `TextLM.fit` takes them, also a stream of any size. Or, with
            `y`, an array of windows of ids, shape (n_samples, n_context). Rows that
            continue the row before, as `windows` makes them, are one text.
        y : ndarray of int, shape (n_samples,), optional
            The next words of windows; of documents it is ignored.
        X_val : iterable of documents, or array of windows, optional
            Held-out documents, of which a part is used. By default a part of `X` is
            held out, from all over it.
        **fit_params
            ``y_val``, the next words of held-out windows. ``checkpoint="folder"`` keeps
            the state of the fit: a killed one resumes from there, in the minutes that
            were left. ``before=lm``, a fitted `AutoLM`, trains its network further.
            ``sample_weight`` of documents is as of `TextLM.fit`.

        Returns
        -------
        self : AutoLM

        Raises
        ------
        ValueError
            If the time is too short even for n-grams, if there is no token, if a
            setting is none, or if a recipe was made for another text. See also
            `TextLM.fit`.
        KeyboardInterrupt
            On an interrupt. If the network has learned something, the model is fitted
            with it.
        """
        training_text.are_windows(X, y, fit_params.get("sample_weight"))
        return super().fit(X, y, X_val=X_val, **fit_params)

    def _fit(
        self,
        X: Any,
        y: Any,
        X_val: Any,
        fit_params: dict[str, Any],
        method: str = "fit",
        budget: fitting.Budget | None = None,
    ) -> KeyboardInterrupt | None:
        self._validate_params()
        fixed = choosing.checked_settings(self.settings or {})
        if self.recipe is not None and (fixed or self.adapt):
            raise ValueError(
                "recipe has all choices: leave settings and adapt out, or the recipe."
            )
        unknown = fit_params.keys() - FIT_PARAMS
        if unknown:
            raise TypeError(f"AutoLM.fit has no parameter {min(unknown)!r}.")
        before, checkpoint = fit_params.get("before"), fit_params.get("checkpoint")
        if before is not None:
            check_before(before, fixed)
        budget = budget or fitting.Budget(60 * float(self.minutes))
        data = X, y, X_val, fit_params.get("y_val")
        # Before its state is read, and until the last one is kept.
        lock = nullcontext() if checkpoint is None else FolderLock.of(checkpoint)
        with lock as folder:
            return self._fit_in(folder, data, before, fixed, budget)

    def _fit_in(
        self,
        folder: FolderLock | None,
        data: tuple[Any, Any, Any, Any],
        before: AutoLM | None,
        fixed: dict[str, Any],
        budget: fitting.Budget,
    ) -> KeyboardInterrupt | None:
        """Fit with settings that are `fixed`, and keep the state in a folder."""
        choice = None if self.recipe is None else fitting.Choice(self.recipe)
        if choice is None and folder is not None:
            choice = fitting.kept_choice(folder.path)
            budget.spent_before = 0.0 if choice is None else choice.seconds
        text, recipe = self._text(*data, choice, before, budget)
        words = self.vocabulary_
        asked = {} if folder is None else self._asked(text, fixed, before)
        if folder is not None and choice is not None and self.recipe is None:
            check_same_fit(folder.path, choice.asked, asked)
        if recipe.continues != (before is not None):
            what, do = (
                ("another", "give that, too")
                if recipe.continues
                else ("no", "leave it out")
            )
            raise ValueError(
                f"the recipe continues {what} model (before, or --continue): {do}."
            )
        with shown(int(self.verbose), budget) as report:
            fit = fitting.AutoFit(
                text, replace(choice or fitting.Choice(recipe), recipe=recipe),
                None if self.recipe is not None else budget,
                training_text.spelling_of(words) if recipe.spelling else None,
                self.n_jobs, folder, report, self.memory,
            )  # fmt: skip
            if before is not None:
                fit.before = deepcopy(fitting.network_of(before.estimator_))
                fit.classes = fitting.member_of(before.estimator_, ClassLM)
            if choice is None:
                settings = {} if before is None else choosing.continued(before.recipe_)
                settings = choosing.changed(settings, fixed)
                choice = choosing.choose(
                    fit, settings, adapt=self.adapt,
                    spell=lambda: training_text.spelling_of(words),
                )  # fmt: skip
                fit.choice = replace(choice, asked=asked)
                fit.check_disk()
            if self.verbose:
                print(described(fit.choice, text, fit.budget, fixed))
                fit.announce = lambda choice: print(
                    "Chosen again, for the true speed:\n"
                    + described(choice, text, fit.budget, fixed)
                )
            self.estimator_, interrupt = fit.run()
            if self.verbose and (advice := hint(fit.order_gain)):
                print(advice)
        self.recipe_, self._scores = fit.recipe, fit.scores
        self.scores_ = {score.name: score.perplexity for score in fit.scores}
        self.n_tokens_ = text.n_tokens
        self.n_words_ = self.estimator_.n_words_
        self.n_context_ = self.estimator_.n_features_in_
        return interrupt

    def _text(
        self,
        X: Any,
        y: Any,
        X_val: Any,
        y_val: Any,
        choice: fitting.Choice | None,
        before: AutoLM | None,
        budget: fitting.Budget,
    ) -> tuple[AutoText, AutoRecipe]:
        """Learn the words; return the text in ids, and the recipe as far as known."""
        codec: Codec = codec_of(None, None)
        n_columns, n_words = 0, None if self.n_words is None else int(self.n_words)
        recipe = None if choice is None else choice.recipe
        if recipe is not None and self.recipe is None:
            recipe = replace(recipe, n_tokens=0)  # `_asked` compares the whole text
        if training_text.are_windows(X, y):
            n_columns = np.shape(X)[1]
            documents = training_text.runs_of_windows(X, y, n_words)
            held_out = training_text.runs_of_windows_held_out(
                X_val, y_val, n_words, n_columns
            )
        elif y_val is not None:
            raise ValueError("y_val is for windows of ids: X has documents.")
        else:
            if before is None:
                codec, documents = training_text.learned_codec(X, self, recipe, budget)
            else:
                codec = fitted_text(before).codec
                documents = encoded(codec, X, "X")
            held_out = None if X_val is None else encoded(codec, X_val, "X_val")
        self.tokenizer_, self.vocabulary_ = codec.tokenizer, codec.vocabulary
        self.boundary_ = boundary_of(self.boundary, self.vocabulary_)
        vocabulary = self.vocabulary_
        return training_text.text_of(
            documents, held_out, recipe or self._known(before), is_new=recipe is None,
            n_columns=n_columns, n_words=n_words,
            least_words=self.boundary_ + 1 if vocabulary is None
            else vocabulary.n_words_,
            boundary=self._text_boundary(n_columns),
        )  # fmt: skip

    def _asked(
        self, text: AutoText, fixed: dict[str, Any], before: AutoLM | None
    ) -> dict[str, str]:
        """Return a fingerprint of the parameters and the text, for a killed fit."""
        names = ("minutes", "running_text", "adapt", "n_words", "memory")
        parameters = {name: getattr(self, name) for name in names}
        settings = {name: fixed[name] for name in fixed if name != "members"}
        parameters |= {"members": fixed.get("members"), "settings": settings}
        parameters["random_state"] = str(self.random_state)
        parameters["before"] = before and "a model"
        if before is not None:  # each choice, to tell the one that differs
            choices = vars(before.recipe_) | before.recipe_.network
            del choices["network"]
            parameters |= {f"before.{name}": choices[name] for name in choices}
        held_out = text.held_out
        return fingerprint(parameters, {
            "X": text.train.ids, "documents": text.train.lengths,
            "X_val": None if held_out is None else held_out.ids,
        })  # fmt: skip

    def _known(self, before: AutoLM | None) -> AutoRecipe:
        """Return the recipe as far as the parameters tell it."""
        seed = check_random_state(self.random_state).randint(2**31)
        if isinstance(self.random_state, (int, np.integer)):
            seed = self.random_state
        tokens = "subwords" if isinstance(self.tokenizer_, Subwords) else "words"
        is_auto = isinstance(self.vocabulary, str)
        return AutoRecipe(
            minutes=float(self.minutes), seed=int(seed),
            running_text=bool(self.running_text), tokens=tokens,
            max_words=getattr(self.vocabulary_, "max_words", None) if is_auto else None,
            held_out=0 if before is None else before.recipe_.held_out,
            continues=before is not None,
        )  # fmt: skip

    def _text_boundary(self, n_columns: int) -> int | None:
        """Return the boundary; by default windows have none."""
        is_none = n_columns and isinstance(self.boundary, str)
        return None if is_none else self.boundary_

    # -- scoring ----------------------------------------------------------------

    def score(self, X: Any, y: object = None, sample_weight: object = None) -> float:
        """Return the mean natural-log probability per token.

        Parameters
        ----------
        X : sequence of documents, or array of int, shape (n_samples, n_context)
            Of the kind that the model was fitted on; or windows of ids.
        y : ndarray of int, shape (n_samples,), optional
            The next words of windows; of documents it is ignored.
        sample_weight : array-like of shape (n_documents,), optional
            How often the tokens of each document count.

        Returns
        -------
        score : float
        """
        if training_text.are_windows(X, y, sample_weight):
            return float(np.mean(self.score_samples(X, y)))
        return super().score(X, y, sample_weight)

    def score_samples(self, X: Any, y: object = None) -> NDArray[np.float64]:
        """Return the log-probability of each document, or of each next word.

        Parameters
        ----------
        X : sequence of documents, or array of int, shape (n_samples, n_context)
            Of the kind that the model was fitted on; or windows of ids. Rows that
            continue the row before, as `windows` makes them, are read as one text.
        y : ndarray of int, shape (n_samples,), optional
            The next words of windows; of documents it is ignored.

        Returns
        -------
        log_prob : ndarray of float64, shape (n_samples,)
            Natural logarithms.
        """
        if not training_text.are_windows(X, y):
            return super().score_samples(X)
        check_is_fitted(self)
        model, n = self.estimator_, X.shape[1]
        if "ngrams" in self.recipe_.members and n < self.recipe_.ngram_order - 1:
            raise ValueError(
                f"X has {n} columns, but n-grams of order {self.recipe_.ngram_order} "
                f"need {self.recipe_.ngram_order - 1}: make wider windows."
            )
        n_words = None if self.n_words is None else int(self.n_words)
        runs = training_text.runs_of_windows(X, y, n_words)
        boundary = self._text_boundary(n)
        text = AutoText(runs, None, self.n_words_, boundary, n_columns=n)
        texts = text.texts(runs, context_of_texts(model))
        check_ids(texts.ids, "X and y", ndim=1, n_words=self.n_words_)
        return texts_log_prob(model, texts)

    @property
    def window_scorer(self) -> type[WindowWordScorer]:
        """The scorer of single words; of running text it remembers the text."""
        return RunningWordScorer if self.recipe_.running_text else WindowWordScorer

    # -- files ------------------------------------------------------------------

    _saved: ClassVar[dict[str, Item]] = {
        "recipe": Item(Fitted.take, dict, of=lambda lm: lm.recipe_.as_dict()),
        "scores": Item(Fitted.take, dict),
        "n_tokens": Item(Fitted.whole),
    }

    def _set_saved(self, values: dict[str, Any]) -> None:
        super()._set_saved(values)
        self.recipe_ = AutoRecipe.of(values["recipe"])
        if not all(type(x) in (int, float) for x in self.scores_.values()):
            raise invalid_item("scores", self.scores_)


def fit_within(
    budget: fitting.Budget,
    lm: AutoLM,
    X: object,
    X_val: object = None,
    **fit_params: Any,
) -> AutoLM:
    """Fit a model to documents in a time that began before; see `AutoLM.fit`."""
    return fit_copy(lm, lambda m: m._fit(X, None, X_val, fit_params, budget=budget))


def scores_of(lm: AutoLM, X: Sequence[object] | None = None) -> list[fitting.Scores]:
    """Return the scores of documents by each model of a mixture, and by the mixture.

    - `X`: documents; by default the held-out ones, until the model is saved
    """
    if X is None:
        return lm._scores
    documents = fitted_text(lm).codec.encode(X, "X")
    weights = np.array(lm.recipe_.weights)
    text = AutoText(
        documents, documents, lm.n_words_, lm.boundary_, lm.recipe_.running_text
    )
    names = [name for name, w in zip(lm.recipe_.members, weights) if w]
    models = getattr(lm.estimator_, "named_estimators_", {names[0]: None})
    scores = [
        fitting.Scores.of(name, getattr(model, "estimator", lm.estimator_), text)
        for name, model in models.items()
    ]
    return [*scores, fitting.Scores.mixed(scores, weights[weights > 0])]


def check_before(before: object, settings: Mapping[str, object]) -> None:
    """Raise an error unless a model has a network to train further, with settings."""
    if not isinstance(before, AutoLM):
        raise TypeError(f"before must be a fitted AutoLM, got {type(before).__name__}.")
    check_is_fitted(before)
    network = fitting.network_of(before.estimator_)
    if network is None:
        raise ValueError(
            "the model before (before, or --continue) has no network to train further: "
            "leave it out."
        )
    choosing.check_continued(network, before.recipe_, settings)

"""AutoLM: the best language model of a text that some minutes of training make."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, replace
from importlib.util import find_spec
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from nplm.base.estimators import Whole
from nplm.base.exceptions import CheckpointError
from nplm.base.files.atomic_files import replacing
from nplm.base.fitted import Fitted
from nplm.base.progress.bars import BAR
from nplm.base.progress.surfaces import Log, Surface, surface
from nplm.models.auto.choosing import (
    MIN_TOKENS,
    Choice,
    check_settings,
    choose,
    continued,
)
from nplm.models.auto.describing import clock, described
from nplm.models.auto.fitting import AutoFit, Budget, network_of
from nplm.models.auto.recipe import AutoRecipe
from nplm.models.auto.rules import MAX_TYPES, N_SUBWORDS, has_rare_words
from nplm.models.auto.running import RunningWordScorer
from nplm.models.auto.texts import AutoText, split
from nplm.models.training.checkpoint import has_save
from nplm.text.codecs import Codec, encoded
from nplm.text.documents import Documents
from nplm.text.fitting import fit_codec
from nplm.text.lm.fitted_text import no_token
from nplm.text.lm.text_lm import TextLM
from nplm.text.subwords.subwords import Subwords
from nplm.text.tokenizer import Tokenizer
from nplm.text.vocabulary import Vocabulary

__all__ = ["AutoLM"]

SPELLING: dict[str, Any] = {"ngrams": (3, 4), "min_words": 5}
# Held-out tokens: a share of the text, and at most so many, and so many a second.
HELD_OUT_SHARE, MAX_HELD_OUT, HELD_OUT_A_SECOND = 0.05, 30_000, 150
CHOICE_FILE = "choice.json"


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
        over 5 folds takes five times as long, and `LMClassifier` as many times as it
        has classes. A fit ends earlier when the held-out text stops improving.
    running_text : bool, default=False
        Whether the documents are one text in its order, such as the lines of a book.
        Then the context of a document's first word is the document before it, in
        training and in scoring, and each document ends with a boundary.
    settings : dict, optional
        Choices that are fixed by hand: ``members`` (of "ngrams", "classes" and
        "network"), ``ngram_order``, ``n_classes``, ``spelling``, ``epochs`` (passes of
        the network over the text, at most), and any parameter of `NeuralLM`, such as
        ``{"n_hidden": 512, "dropout": 0.3}``.
    recipe : AutoRecipe, optional
        The ``recipe_`` of another fit. The fit repeats it without reading a clock, and
        with the same text, `n_jobs` and machine makes the same bits.
    tokenizer, vocabulary, boundary
        As of `TextLM`. With "auto", text with too many types is split into subwords
        if the package ``tokenizers`` is installed; else its rarest words are
        ``<unk>``.
    n_words : int or None, default=None
        Size of the vocabulary where documents are ids; by default the largest id plus
        one.
    memory : int or None, default=2_000_000_000
        Bytes that a fit takes, about: it shortens the n-grams. None is no limit.
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

    def __init__(
        self,
        minutes: float = 3.0,
        *,
        running_text: bool = False,
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
    def from_model(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise TypeError: `TextLM.from_model` makes a text model of a fitted one."""
        raise TypeError("AutoLM makes its own models: use TextLM.from_model.")

    def partial_fit(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise TypeError: a fit has a time, and all documents."""
        raise TypeError("AutoLM has no partial_fit: fit all documents at once.")

    def fit(
        self, X: Iterable[Any], y: Any = None, *, X_val: Any = None, **fit_params: Any
    ) -> Self:
        """Choose the models, train them in the given time, and mix them.

        Parameters
        ----------
        X : iterable of str, of sequence of hashable, or of array-like of int
            Documents, as `TextLM.fit` takes them, also a stream of any size.
        y : ignored
        X_val : iterable of documents, optional
            Held-out documents, of which a part is used. By default a part of `X` is
            held out, from all over it.
        **fit_params
            ``checkpoint="folder"`` keeps the state of the fit: a killed one resumes
            from there, in the minutes that were left. ``before=lm``, a fitted `AutoLM`,
            trains its network further.

        Returns
        -------
        self : AutoLM

        Raises
        ------
        ValueError
            If the time is too short even for n-grams, if there is no token, or if a
            setting is none. See also `TextLM.fit`.
        KeyboardInterrupt
            On an interrupt. If the network has learned something, the model is fitted
            with it.
        """
        return super().fit(X, y, X_val=X_val, **fit_params)

    def _fit(
        self,
        X: Iterable[object],
        y: Any,
        X_val: Any,
        fit_params: dict[str, Any],
        method: str = "fit",
    ) -> KeyboardInterrupt | None:
        """Fit; return the interrupt if one came and left the network fitted."""
        self._validate_params()
        check_settings(self.settings or {})
        options = {"budget": None, "checkpoint": None, "before": None} | fit_params
        unknown = options.keys() - {"budget", "checkpoint", "before"}
        if unknown:
            raise TypeError(f"AutoLM.fit has no parameter {min(unknown)!r}.")
        folder = options["checkpoint"]
        budget = options["budget"] or Budget(60 * float(self.minutes))
        choice = None if self.recipe is None else Choice(self.recipe)
        if choice is None and folder is not None:
            choice = _kept_choice(Path(folder))
        before = options["before"]
        if before is None:
            codec, documents = self._encoded(X, choice)
        else:
            check_is_fitted(before)
            codec = before._codec
            documents = encoded(codec, X, "X")
        self.tokenizer_, self.vocabulary_ = codec.tokenizer, codec.vocabulary
        self.boundary_ = self._check_boundary()
        seed = check_random_state(self.random_state).randint(2**31)
        if isinstance(self.random_state, (int, np.integer)):
            seed = self.random_state
        known = AutoRecipe(
            minutes=float(self.minutes), seed=int(seed),
            running_text=bool(self.running_text),
            tokens="subwords" if isinstance(codec.tokenizer, Subwords) else "words",
            held_out=0 if before is None else before.recipe_.held_out,
        )  # fmt: skip
        if choice is not None:
            known = choice.recipe
        held_out = None if X_val is None else encoded(codec, X_val, "X_val")
        text, n_held_out = self._text(documents, held_out, known, choice is None)
        known = replace(known, held_out=n_held_out)
        del documents, held_out
        with _shown(int(self.verbose), budget) as report:
            fit = AutoFit(
                text, known, None if self.recipe is not None else budget,
                self._word_features(known, text, choice is None), self.n_jobs, folder,
                report,
            )  # fmt: skip
            if before is not None:
                fit.before = deepcopy(network_of(before.estimator_))
            if choice is None:
                settings = {} if before is None else continued(before.recipe_)
                settings |= self.settings or {}
                choice = choose(fit, budget, settings, self.memory)
                if folder is not None and "network" in choice.recipe.members:
                    _keep_choice(Path(folder), choice)
            fit.recipe = choice.recipe
            fit.reserved, fit.scoring_seconds = choice.reserved, choice.scoring_seconds
            fit.most = choice.most
            if self.verbose:
                chosen = self.recipe is None and "members" not in (self.settings or {})
                for line in described(choice, text, budget, gives_reason=chosen):
                    print(line)
            self.estimator_, interrupt = fit.run()
        self.recipe_ = fit.recipe
        self.scores_ = {score.name: score.perplexity for score in fit.scores}
        self.n_tokens_ = text.n_tokens
        self.n_words_ = self.estimator_.n_words_
        self.n_context_ = self.estimator_.n_features_in_
        return interrupt

    def _encoded(
        self, X: Iterable[object], choice: Choice | None
    ) -> tuple[Codec, Documents]:
        """Return the codec of documents, and their ids; too many types are units."""
        is_auto = all(
            isinstance(part, str) and part == "auto"
            for part in (self.tokenizer, self.vocabulary)
        )
        options = {"refuse_zero": isinstance(self.boundary, str)}
        if choice is not None and is_auto and choice.recipe.tokens == "subwords":
            return fit_codec(X, Subwords(n_words=N_SUBWORDS), "auto", self, **options)
        codec, documents = fit_codec(
            X, self.tokenizer, self.vocabulary, self, **options
        )
        is_text = isinstance(codec.tokenizer, Tokenizer)
        is_read_once = hasattr(X, "__next__")
        n_types = 0 if codec.vocabulary is None else codec.vocabulary.n_words_
        if not is_auto or not is_text or is_read_once or n_types <= MAX_TYPES:
            return codec, documents
        if find_spec("tokenizers") is not None:
            return fit_codec(X, Subwords(n_words=N_SUBWORDS), "auto", self, **options)
        limited = Vocabulary(max_words=MAX_TYPES)
        return fit_codec(X, "auto", limited, self, **options)

    def _text(
        self,
        documents: Documents,
        held_out: Documents | None,
        recipe: AutoRecipe,
        is_new: bool,
    ) -> tuple[AutoText, int]:
        """Return the training and held-out text, and the number of held-out tokens."""
        n = len(documents.ids)
        if n + len(documents.lengths) == 0 or (n == 0 and not self.predict_boundary):
            raise no_token(len(documents.lengths))
        wanted = recipe.held_out
        if is_new:
            # Of the text of a network before, no more than was held out from it.
            most = recipe.held_out or MAX_HELD_OUT
            wanted = min(most, round(60 * self.minutes * HELD_OUT_A_SECOND))
            if held_out is None:
                wanted = min(wanted, round(HELD_OUT_SHARE * n))
        if held_out is not None:
            if len(held_out.lengths) == 0:
                raise no_token(0, "X_val")
            if 0 < wanted < len(held_out.ids):
                held_out = split(held_out, wanted)[1]
        elif wanted and n >= MIN_TOKENS:
            documents, held_out = split(documents, wanted)
        else:
            wanted = 0
        n_words = max(int(documents.ids.max(initial=0)), self.boundary_) + 1
        if held_out is not None:
            n_words = max(n_words, int(held_out.ids.max(initial=0)) + 1)
        if self.vocabulary_ is not None:
            n_words = self.vocabulary_.n_words_
        if self.n_words is not None:
            if n_words > self.n_words:
                raise ValueError(
                    f"n_words={self.n_words} is too small: X has the id {n_words - 1}."
                )
            n_words = int(self.n_words)
        text = AutoText(
            documents, held_out, n_words, self.boundary_, recipe.running_text
        )
        return text, int(wanted)

    def _word_features(
        self, recipe: AutoRecipe, text: AutoText, is_new: bool
    ) -> csr_array | None:
        """Return features of the words' spelling, if they pay."""
        pays = recipe.tokens == "words" and has_rare_words(text.n_tokens, text.n_words)
        asked = (self.settings or {}).get("spelling", pays)
        if not (asked if is_new else recipe.spelling) or self.vocabulary_ is None:
            return None
        try:
            return self.vocabulary_.spelling_features(**SPELLING)[0]
        except (ValueError, TypeError):  # they share no features, or are no text
            return None

    # -- scoring ----------------------------------------------------------------

    def _word_scorer(self) -> Any:
        """Return a scorer of single words; of running text it remembers the text."""
        check_is_fitted(self)
        if not self.recipe_.running_text or self._ngram_scorer() is not None:
            return super()._word_scorer()
        return RunningWordScorer(
            self.estimator_, self.n_context_, self.boundary_, *self._ids_and_unknown()
        )

    # -- files ------------------------------------------------------------------

    def _fitted(self) -> dict[str, object]:
        return super()._fitted() | {
            "recipe": self.recipe_.as_dict(), "scores": self.scores_,
            "n_tokens": self.n_tokens_,
        }  # fmt: skip

    def _restore(self, fitted: Fitted) -> None:
        super()._restore(fitted)
        self.recipe_ = AutoRecipe.of(fitted.take("recipe", dict))
        self.scores_ = fitted.take("scores", dict)
        self.n_tokens_ = fitted.whole("n_tokens")
        if not all(type(x) in (int, float) for x in self.scores_.values()):
            raise fitted.invalid_item("scores", self.scores_)


# -- the choice of a fit that was killed ------------------------------------------


def _keep_choice(folder: Path, choice: Choice) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / CHOICE_FILE) as file:
        file.write(json.dumps(asdict(choice)).encode())


def _kept_choice(folder: Path) -> Choice | None:
    """Return the choice of a fit that was killed while its network trained, if any."""
    if not has_save(folder):
        return None
    try:
        values = json.loads((folder / CHOICE_FILE).read_bytes())
        return Choice(**values | {"recipe": AutoRecipe.of(values["recipe"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CheckpointError(
            f"{folder} has a checkpoint, but {CHOICE_FILE} beside it is missing or "
            "damaged; remove the folder to begin anew."
        ) from error


# -- what is shown ----------------------------------------------------------------


class _Shown:
    """Shows the progress of a fit by time."""

    def __init__(self, on: Surface | None, budget: Budget) -> None:
        self._surface, self._budget = on, budget

    def __call__(self, stage: str, note: str) -> None:
        if self._surface is None:
            return
        left = max(0.0, self._budget.left)
        parts = [stage, *([note] if note else []), f"{clock(left)} left"]
        share = 1 - left / self._budget.seconds
        self._surface.show(min(max(share, 0.0), 1.0), f"AutoLM: {', '.join(parts)}")


@contextmanager
def _shown(verbose: int, budget: Budget) -> Iterator[_Shown]:
    on = None
    if verbose:
        on = surface() if verbose >= BAR else Log(20)
    try:
        yield _Shown(on, budget)
    finally:
        if on is not None:
            on.close("")

"""WordClasses: exchange clustering of words by their neighbours."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from nplm.base import checks
from nplm.base.array_types import Ids
from nplm.base.atomic import fit_copy, read_at_once
from nplm.base.estimators.bases import (
    COMMON,
    Documented,
    TransformerMixin,
    Whole,
    hyperparameters,
)
from nplm.base.fitted import Fitted, Item, Saved, invalid_item
from nplm.base.generators import private_generator
from nplm.base.progress import BAR, OnProgress, bar
from nplm.models.classes.partition import Annealing, Bigrams, Partition
from nplm.models.training.checkpoint import Checkpoint, fingerprint
from nplm.models.training.loop import run_passes
from nplm.models.training.parallel.processes import ALONE
from nplm.text.windows import windows

# Called a few times a second with (passes done, passes in all, mutual
# information in nats).
ReportPass = Callable[[float, int, float], None]


@hyperparameters
class WordClasses(TransformerMixin, Saved, Documented):
    r"""Cluster words into classes that maximise the likelihood of class bigrams.

    Each word is in one class. The classes maximise the mutual information
    of neighbouring classes (Brown et al. 1992),

    .. math:: I = \sum_{g,h} \frac{N(g,h)}{N}
        \log \frac{N(g,h)\, N}{N(g,\cdot)\, N(\cdot,h)},

    which also maximises the likelihood of a class bigram model. The search is
    exchange clustering (Ney and Kneser 1993; Martin, Liermann and Ney 1998): one
    word after another moves to its best class. Greedy moves end in a poor local
    optimum, so the first `max_iter` passes draw the class of each word with
    probability proportional to ``exp(gain / temperature)`` at a falling
    temperature (simulated annealing); greedy passes follow until no word moves.

    Parameters
    ----------
    n_classes : int, default=500
        Number of classes, at most the size of the vocabulary.
    n_words : int, optional
        Size of the vocabulary; inferred from the stream by default.
    boundary : int, optional
        Id of the symbol between sentences. It has a class of its own.
    max_iter : int, default=80
        Number of passes at a falling temperature; 0 is plain exchange. More passes
        find better classes. A pass takes about the same time at any temperature.
    random_state : int, RandomState instance or None, default=None
        Seeds the drawing of classes; an int makes the result reproducible.
    verbose : int, default=0
        1 prints a line per pass and a minute, 2 shows a bar.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_words_,)
        The class of each word; class 0 has the most tokens. The words that do not
        occur are in the class whose neighbours are most like those of rare words.
    mutual_information_ : float
        Mutual information of neighbouring classes, in nats; ``exp(H - I)`` is the
        perplexity of the class bigrams on the stream, H being the entropy of its
        words.
    n_iter_ : int
        Number of passes, including greedy ones.
    history_ : dict of list
        For each pass ``mutual_information`` (at its end), ``n_moves`` and
        ``seconds``.
    n_classes_, n_words_ : int
        Number of classes and vocabulary size in use.

    Notes
    -----
    A pass visits every word and the classes h that occur next to the classes of
    its neighbours: at most (distinct neighbouring classes of the word) times
    `n_classes` look-ups, and fewer if the class bigrams are sparse. Memory is 8
    bytes for each pair of classes and 16 for each distinct bigram of words.

    After an interrupt (Ctrl-C), the model has the classes reached so far.

    References
    ----------
    P. F. Brown, V. J. Della Pietra, P. V. deSouza, J. C. Lai and R. L. Mercer
    (1992). Class-based n-gram models of natural language. Computational
    Linguistics 18.

    H. Ney and R. Kneser (1993). Improved clustering techniques for class-based
    statistical language modelling. Eurospeech.

    S. Martin, J. Liermann and H. Ney (1998). Algorithms for bigram and trigram
    word clustering. Speech Communication 24.

    Examples
    --------
    Words 0 and 1 are followed by 2 or 3, and these by 0 or 1:

    >>> import numpy as np
    >>> from nplm import WordClasses
    >>> rng = np.random.default_rng(0)
    >>> ids = np.stack([rng.integers(0, 2, 50), rng.integers(2, 4, 50)], axis=1).ravel()
    >>> classes = WordClasses(n_classes=2, random_state=0).fit(ids)
    >>> a, b, c, d = classes.labels_
    >>> bool(a == b and c == d and a != c)
    True
    >>> round(classes.mutual_information_, 2)
    0.69
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **COMMON,
        "n_classes": [Whole(1)],
        "max_iter": [Whole(0)],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    n_classes: int = field(default=500, kw_only=False)
    n_words: int | None = None
    boundary: int | None = None
    max_iter: int = 80
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    def fit(
        self,
        ids: ArrayLike,
        y: Any = None,
        *,
        progress: ReportPass | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Find the classes.

        Parameters
        ----------
        ids : array-like of int, shape (n_tokens,)
            Word ids in text order, at least two.
        y : ignored
        progress : callable, optional
            Called a few times a second as ``progress(done, total, information)``:
            passes done (with a fraction), the least total number of passes, and the
            current mutual information. An exception that it raises ends the fit.
        checkpoint : path-like, optional
            Folder for the state of this fit alone, saved every 5 to 60 seconds, after
            every pass, and on an interrupt. After a kill at any moment, a fit with the
            same parameters and text resumes from the last save, and ends with the same
            classes as an uninterrupted one.

        Returns
        -------
        self : WordClasses

        Raises
        ------
        ValueError
            If ids or a parameter are out of range, or there is only one token.
        """
        self._validate_params()
        stream = checks.check_ids(ids, "ids", ndim=1, n_words=self.n_words)
        X, after = windows(stream, 1, boundary=self.boundary)
        return self.fit_pairs(X[:, 0], after, progress, checkpoint)

    def fit_pairs(
        self,
        before: Ids,
        after: Ids,
        progress: ReportPass | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Find the classes from pairs of adjacent words."""
        return fit_copy(
            self, lambda model: model._anneal(before, after, progress, checkpoint)
        )

    def _anneal(
        self,
        before: Ids,
        after: Ids,
        progress: ReportPass | None,
        checkpoint: str | os.PathLike[str] | None,
    ) -> KeyboardInterrupt | None:
        """Find the classes; return the interrupt that ended the passes, if any."""
        self._validate_params()
        if self.boundary is not None and self.n_classes < 2:
            raise ValueError(
                "n_classes=1 leaves no class for words besides that of the boundary; "
                "set n_classes to 2 or more."
            )
        if self.n_words is None:
            n_words = checks.inferred_n_words(before, after, "ids")
        else:
            n_words = int(self.n_words)
        checks.check_boundary(self.boundary, n_words)
        bigrams = Bigrams(before, after, n_words)
        state = Partition(bigrams, min(int(self.n_classes), n_words), self.boundary)
        rng, n_cooling = private_generator(self.random_state), int(self.max_iter)
        name, verbose = type(self).__name__, int(self.verbose)
        job = Annealing(state, n_cooling, verbose if verbose < BAR else 0, name)
        report: OnProgress | None = None
        if progress is not None:
            n, callback = job.n_steps, progress

            def report(done: float, total: float, information: float) -> None:
                callback(done / n, round(total / n), information)

        saves = None
        if checkpoint is not None:
            parameters = self.get_params() | {"cooling": n_cooling}
            if isinstance(self.random_state, np.random.RandomState):
                del parameters["random_state"]
            identity = fingerprint(parameters, {"before": before, "after": after})
            saves = Checkpoint(checkpoint, identity, ALONE)
        shown = bar(
            0 if report is not None else verbose,
            name,
            lambda information: f"mutual information {information:.4f} nats",
        )
        with saves or nullcontext(), shown as drawn:
            interrupt = run_passes(
                job,
                rng,
                ALONE,
                progress=report or drawn,
                checkpoint=saves,
                verbose=verbose,
            )
        self.n_words_ = n_words
        self.n_classes_ = state.n_classes
        self.history_ = job.history
        self.labels_ = state.labels_by_size()
        self.mutual_information_ = state.mutual_information
        self.n_iter_ = job.n_ended
        return interrupt

    @read_at_once
    def transform(self, ids: ArrayLike) -> Ids:
        """Return the class of each word.

        Parameters
        ----------
        ids : array-like of int, shape (n_tokens,)
            Word ids, below ``n_words_``.

        Returns
        -------
        classes : ndarray of int32, shape (n_tokens,)
        """
        check_is_fitted(self)
        n_words = len(self.labels_)
        words = checks.trusted_ids(
            checks.check_ids(ids, "ids", ndim=1, n_words=n_words), n_words
        )
        return self.labels_[words]

    _saved: ClassVar[dict[str, Item]] = {
        "labels": Item(Fitted.ids, (None,)),
        "n_classes": Item(Fitted.whole, 1, checks.MAX_N_WORDS),
        "mutual_information": Item(Fitted.number),
        "history": Item(Fitted.history, "mutual_information", "n_moves", "seconds"),
        "n_iter": Item(Fitted.whole),
    }

    def _set_saved(self, values: dict[str, Any]) -> None:
        super()._set_saved(values)
        if self.labels_.max(initial=0) >= self.n_classes_:
            raise invalid_item("labels", self.labels_)
        self.n_words_ = len(self.labels_)

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        return tags

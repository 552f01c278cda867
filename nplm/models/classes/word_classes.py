"""WordClasses: words that keep the same company, by exchange clustering."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nplm.base.atomic import aside, become, read_at_once
from nplm.base.checks import (
    COMMON,
    MAX_N_WORDS,
    Whole,
    check_boundary,
    check_ids,
    inferred_n_words,
    own_ids,
)
from nplm.base.fitted import Fitted
from nplm.base.pages import Documented
from nplm.models.classes.annealing import Annealing
from nplm.models.classes.partition import Bigrams, Partition
from nplm.text.windows import windows
from nplm.training.bars import BAR, bar
from nplm.training.checkpoint import Checkpoint, fingerprint
from nplm.training.loop import OnProgress, run_passes
from nplm.training.parallel.processes import ALONE

__all__ = ["WordClasses"]

# Called a few times a second with (passes done, passes in all, mutual
# information in nats).
ReportPass = Callable[[float, int, float], None]


class WordClasses(TransformerMixin, Documented, BaseEstimator):
    r"""Classes of words that make the class bigrams of a text most likely.

    Each word is in one class, and the classes maximise the mutual information
    of neighbouring classes (Brown et al. 1992),

    .. math:: I = \sum_{g,h} \frac{N(g,h)}{N}
        \log \frac{N(g,h)\, N}{N(g,\cdot)\, N(\cdot,h)},

    which is the same as the likelihood of a class bigram model. The search is
    exchange clustering (Ney and Kneser 1993; Martin, Liermann and Ney 1998): one
    word after another moves to its best class. Greedy moves end in a poor local
    optimum, so the first `max_iter` passes draw the class of each word with
    probability proportional to ``exp(gain / temperature)`` at a falling
    temperature (simulated annealing); greedy passes follow until no word moves.

    Parameters
    ----------
    n_classes : int, default=500
        Number of classes; no more than the vocabulary has words are used.
    n_words : int, optional
        Size of the vocabulary; inferred from the stream by default.
    boundary : int, optional
        Id of a mark between sentences. It has a class to itself.
    max_iter : int, default=80
        Passes at a falling temperature; 0 is plain exchange. More find better
        classes: a pass costs about the same, whatever its temperature.
    random_state : int, RandomState instance or None, default=None
        Draws the classes; an int gives the same result each time.
    verbose : int, default=0
        1 prints a line a pass, 2 shows a bar.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_words_,)
        The class of each word, from 0, the class with the most tokens. A word
        that the stream lacks is put with the class of the most words, which is
        where rare words are.
    mutual_information_ : float
        Of neighbouring classes, in nats; ``exp(H - I)`` is the perplexity of the
        class bigrams on the stream, H being the entropy of its words.
    n_iter_ : int
        Passes made, the greedy ones included.
    history_ : dict of list
        For each pass ``mutual_information`` (after it), ``n_moves`` and
        ``seconds``.
    n_classes_, n_words_ : int
        Classes and vocabulary size in use.

    Notes
    -----
    A pass visits every word and, for it, the classes h that meet the classes of
    its neighbours: at most (distinct neighbouring classes of the word) times
    `n_classes` look-ups, and fewer as the class bigrams grow sparse. Memory is 8
    bytes for each pair of classes and 16 for each distinct bigram of words.

    An interrupt (Ctrl-C) leaves the classes reached.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **COMMON,
        "n_classes": [Whole(1)],
        "max_iter": [Whole(0)],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_classes: int = 500,
        *,
        n_words: int | None = None,
        boundary: int | None = None,
        max_iter: int = 80,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_classes = n_classes
        self.n_words = n_words
        self.boundary = boundary
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

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
            Word ids in text order, two at least.
        y : ignored
        progress : callable, optional
            Called a few times a second as ``progress(done, total, information)``:
            passes done (with a fraction), passes in all (at least), and the
            mutual information now. An exception it raises ends the fit.
        checkpoint : path-like, optional
            Folder, of this fit alone, to save its state to: every minute, after
            every pass, and on an interrupt. A fit killed at any moment goes on from
            the last save when it is called again with the same parameters and text,
            and ends with the classes it would have had.

        Returns
        -------
        self : WordClasses

        Raises
        ------
        ValueError
            If ids or a parameter are out of range, or there is only one token.
        """
        self._validate_params()
        stream = check_ids(ids, "ids", ndim=1, n_words=self.n_words)
        X, after = windows(stream, 1, boundary=self.boundary)
        return self._fit_pairs(X[:, 0], after, progress, checkpoint)

    def _fit_pairs(
        self,
        before: NDArray[np.int32],
        after: NDArray[np.int32],
        progress: ReportPass | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Find the classes of words that stand side by side."""
        self._validate_params()
        if self.boundary is not None and self.n_classes < 2:
            raise ValueError(
                "n_classes=1 leaves no class for words beside that of the boundary; "
                "give 2 or more."
            )
        if self.n_words is None:
            n_words = inferred_n_words(before, after, "ids")
        else:
            n_words = int(self.n_words)
        check_boundary(self.boundary, n_words)
        bigrams = Bigrams(before, after, n_words)
        state = Partition(bigrams, min(int(self.n_classes), n_words), self.boundary)
        rng, n_cooling = check_random_state(self.random_state), int(self.max_iter)
        name, verbose = type(self).__name__, int(self.verbose)
        job = Annealing(state, n_cooling, verbose if verbose < BAR else 0, name)
        report: OnProgress | None = None
        if progress is not None:
            n, told = job.n_steps, progress

            def report(done: float, total: float, information: float) -> None:
                told(done / n, round(total / n), information)

        saves = None
        if checkpoint is not None:
            parameters = self.get_params() | {"cooling": n_cooling}
            if isinstance(self.random_state, np.random.RandomState):
                del parameters["random_state"]
            marks = fingerprint(parameters, {"before": before, "after": after})
            saves = Checkpoint(checkpoint, marks, ALONE)
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
        # A second interrupt may come before all is set.
        fitted = aside(self)
        fitted.n_words_ = n_words
        fitted.n_classes_ = state.n_classes
        fitted.history_ = job.history
        fitted.labels_ = state.labels_by_size()
        fitted.mutual_information_ = state.mutual_information
        fitted.n_iter_ = job.n_ended
        become(self, fitted)
        try:
            if interrupt is not None:
                raise interrupt
        finally:
            del interrupt  # else it would hold this frame, and its arrays, in a cycle
        return self

    @read_at_once
    def transform(self, ids: ArrayLike) -> NDArray[np.int32]:
        """Class of each word.

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
        words = own_ids(check_ids(ids, "ids", ndim=1, n_words=n_words), n_words)
        return self.labels_[words]

    def _fitted(self) -> dict[str, Any]:
        return {
            "labels": self.labels_,
            "n_classes": self.n_classes_,
            "mutual_information": self.mutual_information_,
            "history": self.history_,
            "n_iter": self.n_iter_,
        }

    def _restore(self, fitted: Fitted) -> None:
        self.n_classes_ = fitted.whole("n_classes", 1, MAX_N_WORDS)
        self.labels_ = fitted.ids("labels", (None,), self.n_classes_)
        self.n_words_ = len(self.labels_)
        self.mutual_information_ = fitted.number("mutual_information")
        columns = "mutual_information", "n_moves", "seconds"
        self.history_ = fitted.history("history", *columns)
        self.n_iter_ = fitted.whole("n_iter")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        return tags

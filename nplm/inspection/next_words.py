"""NextWordsDisplay: the most probable next words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from nplm.base.array_types import Floats
from nplm.base.checks import check_word_of_each
from nplm.inspection._display import Axes, Display, check_matplotlib
from nplm.inspection.words import ids_of
from nplm.text.lm.drawing import most_probable
from nplm.text.words.known_words import UNKNOWN


class NextWordsDisplay(Display):
    """Bar chart of the most probable next words, the most probable at the top.

    Use `from_estimator` to create a display.

    Parameters
    ----------
    words : sequence of str
        The words, the most probable first.
    proba : array-like of float
        Their probabilities.
    context : str, optional
        The context, for the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the axes.
    bars_ : matplotlib BarContainer
        A bar for each word.

    Examples
    --------
    >>> from nplm import InterpolatedTrigram, TextLM
    >>> from nplm.inspection import NextWordsDisplay
    >>> lm = TextLM(InterpolatedTrigram()).fit(["to be or not to be"] * 9)
    >>> display = NextWordsDisplay.from_estimator(lm, "not to", k=2)
    >>> display.words[0]
    'be'
    """

    def __init__(
        self, words: Sequence[object], proba: ArrayLike, *, context: str | None = None
    ) -> None:
        self.words = list(words)
        self.proba = np.asarray(proba)
        self.context = context

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        context: Any,
        *,
        words: Sequence[object] | NDArray[np.object_] | None = None,
        k: int = 10,
        exclude: Iterable[object] = (),
        unknown: bool = False,
        ax: Axes | None = None,
        **kwargs: object,
    ) -> Self:
        """Plot the most probable next words after a context.

        Parameters
        ----------
        estimator : TextLM, or a model of windows
            Fitted.
        context : document, or array-like of int, shape (n_context,)
            The start of a document; for a model of windows, one row of X.
        words : sequence of str, shape (n_words_,), optional
            The word of each id, for a model of windows.
        k : int, default=10
            Number of words.
        exclude : iterable of words, default=()
            Words to leave out.
        unknown : bool, default=False
            Whether the symbol for unknown words may be shown: that of the `TextLM`, or
            ``<unk>`` and ``<UNK>`` among `words`. If words are left out, the
            probabilities are conditional on the next word being none of them.
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        **kwargs : dict
            Passed to matplotlib's ``barh``, such as ``color="grey"``.

        Returns
        -------
        display : NextWordsDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If `words` is missing for a model of windows, or given for a `TextLM`, which
            has its own.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        if hasattr(estimator, "next_words"):
            if words is not None:
                raise ValueError(
                    "words is for models of windows, and a TextLM has its own: leave "
                    "it out."
                )
            likely, proba = estimator.next_words(
                context, k, exclude=exclude, unknown=unknown
            )
            title = context if isinstance(context, str) else " ".join(map(str, context))
        else:
            likely, proba = _next_words(estimator, context, words, k, exclude, unknown)
            assert words is not None  # they were looked up
            title = " ".join(str(words[i]) for i in np.asarray(context))
        return cls(likely, proba, context=title).plot(ax, **kwargs)

    def _draw(self, ax: Axes, **kwargs: Any) -> None:
        rows = np.arange(len(self.words))
        self.bars_ = ax.barh(rows, self.proba, **kwargs)
        ax.set_yticks(rows, [str(word) for word in self.words], parse_math=False)
        ax.invert_yaxis()
        ax.set_xlabel("probability")
        if self.context:
            ax.set_title(f"{self.context} …", parse_math=False)


def _next_words(
    model: Any,
    context: ArrayLike,
    words: Any,
    k: int,
    exclude: Iterable[object],
    unknown: bool,
) -> tuple[list[object], Floats]:
    """Return the most probable next words of a model of windows."""
    check_word_of_each(words, model.n_words_)
    left_out = ids_of(exclude, words, "exclude")
    if not unknown:
        left_out += [i for i, word in enumerate(words) if word in UNKNOWN]
    excluded = np.unique(np.array(left_out, dtype=np.int32))
    ids, proba = most_probable(model.predict_proba([context]), k, excluded)
    return [words[i] for i in ids], proba

"""Option for the features of the words."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from nplm.base.estimators.bases import Whole, hyperparameters
from nplm.models.neural.options.base import Option
from nplm.text.word_rows import SPELLING, STARTS


@hyperparameters
class Features(Option):
    """Initial values, sharing and senses of the word features.

    Parameters
    ----------
    embeddings : array-like of float, shape (n_words, embedding_dim), {"auto", \
"counts"} or None, default="auto"
        Initial features C. With `word_features`, those that each word does not share
        begin with what the others lack. Continued training ignores them.

        "counts" computes them from the training windows (``partial_fit``: those of the
        first call), as `cooccurrence_embeddings` does from a text. Words that are not
        in them start with zeros. None draws all features. "auto" is "counts" with tied
        output weights, and else None (:ref:`figures <decision-features>`).

        An array may come from `cooccurrence_embeddings` or ``Vocabulary.embeddings``.
        Inside a `TextLM` it is given by word: a dict of word to vector, gensim's
        ``KeyedVectors``, or a tuple ``(words, vectors)``, such as
        `nplm.formats.read_vectors` returns. Words without a vector get one as in
        ``Vocabulary.embeddings``. The `TextLM` refuses an array unless the words of its
        vocabulary are given.
    trained : bool, default=True
        False keeps C at `embeddings`. (The paper found such fixed features
        "unsuccessful", and so does nplm: :ref:`figures <decision-features>`.)
    word_features : sparse matrix or array-like, shape (n_words, n_features), or None
        Parts that words share, such as ``Vocabulary.spelling_features`` or parts of
        speech. The features of word w are its own, plus for each part f trained
        features G(f) (``G_``) times the entry at (w, f). Inside a `TextLM` they are
        given by word: "spelling" for the ``Vocabulary.spelling_features`` of its
        vocabulary, a dict of word to row, or a tuple ``(words, matrix)``. A word that
        has no row has no parts. The `TextLM` refuses a matrix unless the words of its
        vocabulary are given.
    n_senses : int, default=1
        Number of senses of a word (section 5.2, item 6). With two or more, each word of
        the window adds a mixture of this many learned vectors (``S_``) to its features;
        the weights are a softmax of the product of learned vectors (``Q_``) and the sum
        of the features of the other words of the window. The first 2,000 words (of a
        `Vocabulary`, the most frequent) have their own, and the other words share one
        set. :ref:`Their gain <decision-senses>` is small.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import Features, NeuralLM
    >>> start = np.zeros((10, 4))
    >>> lm = NeuralLM(n_words=10, embedding_dim=4, features=Features(start))
    >>> lm.set_params(features__n_senses=2).features.n_senses
    2
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "embeddings": [StrOptions(set(STARTS)), "array-like", None],
        "trained": ["boolean"],
        "word_features": ["array-like", "sparse matrix", StrOptions({SPELLING}), None],
        "n_senses": [Whole(1)],
    }

    embeddings: Any = field(default="auto", kw_only=False)
    trained: bool = True
    word_features: object = None
    n_senses: int = 1

    def _validate_params(self) -> None:
        super()._validate_params()
        start = self.embeddings
        is_auto = isinstance(start, str) and start == "auto"
        if not self.trained and (start is None or is_auto):
            raise ValueError(
                f"trained=False with embeddings={start!r} would keep random "
                'features; give embeddings, or set "counts".'
            )

"""TextNgrams: back-off n-grams of text, without an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from nplm._kernels.ngrams._trie import take_logs
from nplm.base.array_types import Floats, Ids
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.hashing import index_of
from nplm.text.codecs import codec_of
from nplm.text.lm.scorer import Scorer
from nplm.text.lm.window_scorer import WindowWordScorer
from nplm.text.words.known_words import KnownWords
from nplm.text.words.splitting import Splitter, params_of

if TYPE_CHECKING:
    from nplm.text.lm.text_lm import TextLM


class NoNgramsError(TypeError):
    """A model is not one set of back-off n-grams; `model` is the name of its class."""

    def __init__(self, name: str, model: str) -> None:
        super().__init__(
            f"{name} is over a {model}, which is not one set of back-off n-grams: pass "
            "a KneserNeyLM or a BackoffLM (a MixtureLM mixes others at run time)."
        )
        self.model = model


class TextNgrams(NamedTuple):
    """Back-off n-grams of text, which are changed and written without scikit-learn.

    `tokenizer` is None if documents are lists of words.
    """

    trie: BackoffTrie
    words: KnownWords
    boundary: int
    tokenizer: Any
    predict_boundary: bool = True

    @classmethod
    def of(cls, lm: Any, name: str = "lm") -> Self:
        """Return those of a text model, which errors call `name`.

        Raises NoNgramsError if it has other n-grams, TypeError if it is no text model,
        and ValueError if it has ids and no words.
        """
        from sklearn.utils.validation import check_is_fitted

        from nplm.models.ngrams.backoff_model import BackoffModel
        from nplm.text.lm.text_lm import TextLM

        if not isinstance(lm, TextLM):
            raise TypeError(
                f"{name} is a {type(lm).__name__}: pass a TextLM; "
                "TextLM.from_model(model, words) makes one."
            )
        check_is_fitted(lm)
        model = lm.estimator_
        if not isinstance(model, BackoffModel):
            raise NoNgramsError(name, type(model).__name__)
        if lm.vocabulary_ is None:
            raise ValueError(
                f"{name} has ids and no words: make it by TextLM.from_model(model, "
                "words)."
            )
        words = lm.vocabulary_.known
        trie = model.trie_.unpacked()
        return cls(trie, words, lm.boundary_, lm.tokenizer_, lm.predict_boundary)

    def with_words(
        self, words: Sequence[Any], unknown: str | None, spelling: Any = None
    ) -> Self:
        """Return the same n-grams with other words, by default of the same spelling."""
        end = self.words.words[self.boundary]
        known = KnownWords(words, unknown, end, spelling or self.words.spelling)
        assert known.boundary_id is not None
        return self._replace(words=known, boundary=known.boundary_id)

    def scorer(self) -> Scorer:
        """Return a scorer that needs no hash table."""
        look_ups = TrieLookUps(self.trie)
        scorer = WindowWordScorer(
            look_ups,
            look_ups.n_features_in_,
            self.boundary,
            *self.words.ids_and_unknown,
        )
        codec = codec_of(self.tokenizer, self.words)
        return Scorer(scorer, codec, eos=self.predict_boundary)

    def text_lm(self, *, index: bool) -> TextLM:
        """Return the text model, with a hash table of the n-grams if asked for."""
        from nplm.models.ngrams.backoff_model import BackoffLM
        from nplm.text.lm.text_lm import TextLM
        from nplm.text.tokenizer import Tokenizer

        table = index_of(self.trie) if index else None
        tokenizer = self.tokenizer
        if type(tokenizer) is Splitter:
            tokenizer = Tokenizer(**params_of(tokenizer))
        return TextLM.from_model(
            BackoffLM.from_trie(self.trie, table, boundary=self.boundary),
            self.words,
            tokenizer=tokenizer,
            predict_boundary=self.predict_boundary,
        )


class TrieLookUps(NamedTuple):
    """The log-probabilities of windows, looked up in a trie."""

    trie: BackoffTrie

    @property
    def n_words_(self) -> int:
        """Size of the vocabulary."""
        return self.trie.n_words

    @property
    def n_features_in_(self) -> int:
        """Number of words of context; 1 of unigrams, which use none."""
        return max(self.trie.order - 1, 1)

    def log_prob(self, X: Ids, y: Ids) -> Floats:
        """Return the log-probability of each next word given its context."""
        prob = self.trie.next_word_prob(X, y)
        take_logs(prob)
        return prob

"""Ngrams: the n-grams of a file, from which a scorer or a model is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from nplm.formats._words import reserve_for_words
from nplm.models.ngrams.kenlm_trie import LOG_ZERO, KenlmTrie
from nplm.models.ngrams.text_ngrams import TextNgrams
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.hash_table import HashTable, WindowLookUps
from nplm.models.ngrams.trie.packed_trie import MappedTrie
from nplm.models.ngrams.trie.quantized_trie import QuantizedTrie
from nplm.models.ngrams.trie.word_scorer import word_scorer_of
from nplm.models.ngrams.trie.work import Work
from nplm.text.codecs import Text
from nplm.text.lm.scorer import Scorer
from nplm.text.words.known_words import (
    KnownWords,
    UnknownSpelling,
    known_words_of,
)
from nplm.text.words.splitting import BETWEEN_BLANKS, END, Splitter

if TYPE_CHECKING:
    from nplm.models.ngrams.backoff_model import BackoffLM
    from nplm.models.ngrams.looked_up_lm import KenlmLM, QuantizedLM
    from nplm.text.lm.text_lm import TextLM

# The parameters of a `Splitter`, or a `Tokenizer`, of files without a tokenizer.
AT_BLANKS: dict[str, object] = {"pattern": BETWEEN_BLANKS}


StoredTrie = BackoffTrie | MappedTrie | QuantizedTrie | KenlmTrie
Trie = TypeVar("Trie", bound=StoredTrie, covariant=True)


class Ngrams(NamedTuple, Generic[Trie]):
    """The n-grams of a file. Only a model of them needs scikit-learn.

    - `table`: None of tries that have none, and if it was not asked for
    - `split`: parameters of the `Splitter`, or the `Tokenizer`, of the text
    - `spelling`: parameters of how unknown words are spelled

    The words and the spelling of a damaged file raise a ValueError when they are used.
    """

    trie: Trie
    table: HashTable | None
    boundary: int | None
    words: Sequence[str]
    split: dict[str, Any] = AT_BLANKS
    spelling: Any = None

    def scorer(self) -> Scorer:
        """Return the scorer of `text_lm`; without a model, if look-ups need none."""
        trie: Any = self.trie  # a trie of arrays is not looked up by itself
        table = self.table or (trie if isinstance(trie, WindowLookUps) else None)
        if table is None:
            return self.text_lm().scorer()
        known, boundary = self._known(self.words)
        word_scorer = word_scorer_of(table, boundary, *known.ids_and_unknown)
        codec = Text(Splitter(**self.split), known)
        return Scorer(word_scorer, codec, eos=self._predicts(boundary))

    def text_ngrams(self, work: Work) -> TextNgrams:
        """Return n-grams of text whose arrays can be read in order, and are checked."""
        trie = self._unpacked(work)
        known, boundary = self._known(list(self.words))
        split = Splitter(**self.split), self._predicts(boundary)
        return TextNgrams(trie, known, boundary, *split)

    def with_boundary(self, work: Work) -> Ngrams[BackoffTrie]:
        """Return n-grams with a boundary of probability 0, as of text without marks."""
        trie, words = self._unpacked(work).with_word(), [*self.words, END]
        others = self.split, self.spelling
        return Ngrams(trie, None, len(self.words), words, *others)

    def _unpacked(self, work: Work) -> BackoffTrie:
        """Return the trie whose arrays are read in order."""
        reserve_for_words(work, len(self.words))
        stored: StoredTrie = self.trie
        if isinstance(stored, BackoffTrie | MappedTrie):
            return stored.unpacked(work)
        from nplm.models.ngrams.stages.quantizing import unquantized

        return unquantized(stored, work)

    def model(self) -> BackoffLM | QuantizedLM | KenlmLM:
        """Return the model."""
        from nplm.models.ngrams.backoff_model import BackoffLM
        from nplm.models.ngrams.looked_up_lm import KenlmLM, QuantizedLM

        if isinstance(self.trie, KenlmTrie):
            return KenlmLM.from_trie(self.trie, boundary=self.boundary)
        if isinstance(self.trie, QuantizedTrie):
            return QuantizedLM.from_trie(self.trie, boundary=self.boundary)
        return BackoffLM.from_trie(self.trie, self.table, boundary=self.boundary)

    def text_lm(self) -> TextLM:
        """Return the model of text."""
        from nplm.text.lm.text_lm import TextLM
        from nplm.text.tokenizer import Tokenizer

        known, boundary = self._known(self.words)
        tokenizer, ends = Tokenizer(**self.split), self._predicts(boundary)
        parts = self.model(), known
        return TextLM.from_model(*parts, tokenizer=tokenizer, predict_boundary=ends)

    def _known(self, words: Sequence[str]) -> tuple[KnownWords, int]:
        """Return words with their ids and their spelling, and that of the boundary."""
        assert self.boundary is not None  # `OpenModel` refuses files without
        known = known_words_of(words, self.boundary)
        if self.spelling is not None:
            known.spelling = UnknownSpelling.of_params(self.spelling, known.unknown)
        return known, self.boundary

    def _predicts(self, boundary: int) -> bool:
        """Whether lines have an end: not in n-grams without marks of sentences."""
        trie: StoredTrie = self.trie
        if isinstance(trie, KenlmTrie):
            return bool(trie.kernel.unigram_prob[boundary] > LOG_ZERO)
        prob = (trie.table if isinstance(trie, MappedTrie) else trie).prob
        return bool(prob[boundary] > 0)

"""Text models over n-grams whose arrays can be read in order, in memory or on disk."""

from __future__ import annotations

from nplm.formats._models import trie_of
from nplm.formats._words import StoredWords, check_words, reserve_for_words
from nplm.models.ngrams.backoff_lm import BackoffLM
from nplm.models.ngrams.quantized_lm import QuantizedLM
from nplm.models.ngrams.stages.quantizing import unquantized
from nplm.models.ngrams.trie.work import Work
from nplm.text.lm.text_lm import TextLM
from nplm.text.tokenizer import Tokenizer
from nplm.text.words.known_words import known_of

__all__ = ["unpacked_lm", "words_of"]


def unpacked_lm(lm: TextLM, work: Work) -> TextLM:
    """Return a text model over a trie whose arrays can be read in order.

    - `lm`: a text model over n-grams, in memory or mapped from a file, or quantized

    Returns `lm`: over a `BackoffLM` without a hash table. Raises TypeError if it has no
    n-grams. Raises ValueError if the file is damaged.
    """
    model = lm.estimator_
    reserve_for_words(work, lm.n_words_)
    if isinstance(model, QuantizedLM):
        trie = unquantized(model.trie_, work)
    else:
        trie = trie_of(model).unpacked(work)
    return TextLM.from_model(
        BackoffLM.from_trie(trie, boundary=model.boundary),
        lm.vocabulary_,
        tokenizer=lm.tokenizer_,
        boundary=lm.boundary_,
        predict_boundary=lm.predict_boundary,
    )


def words_of(lm: TextLM) -> StoredWords:
    """Return the words of a text model over n-grams, for a file."""
    assert lm.vocabulary_ is not None
    tokenizer = lm.tokenizer_ if isinstance(lm.tokenizer_, Tokenizer) else None
    words = check_words(lm.vocabulary_.words_.tolist(), lm.n_words_)
    spelling = known_of(lm.vocabulary_).spelling
    return StoredWords(
        words, lm.estimator_.boundary, tokenizer=tokenizer, spelling=spelling
    )

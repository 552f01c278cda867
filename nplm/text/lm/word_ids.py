"""Ids of a vocabulary's words by their bytes, for kernels that split text at blanks."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from nplm._kernels.ngrams.decoding._word_ids import WordIds
from nplm.text.codecs import Codec
from nplm.text.tokenizer import Tokenizer
from nplm.text.vocabulary import Vocabulary

__all__ = ["word_ids_of"]

# With the dictionary of the words, which is another one when words are added.
_MADE: WeakKeyDictionary[Vocabulary, tuple[object, WordIds | None]] = (
    WeakKeyDictionary()
)


def word_ids_of(codec: Codec) -> WordIds | None:
    """Return the ids of words by their bytes, made once for a vocabulary.

    Parameters
    ----------
    codec : Codec

    Returns
    -------
    words : WordIds or None
        None if documents are no words between blanks, or UTF-8 does not spell all
        words of the vocabulary.
    """
    tokenizer, vocabulary = codec.tokenizer, codec.vocabulary
    if not isinstance(tokenizer, Tokenizer) or vocabulary is None:
        return None
    if not tokenizer.splits_at_blanks:
        return None
    ids, made = _MADE.get(vocabulary, (None, None))
    if ids is not vocabulary.ids_:
        ids, words = vocabulary.ids_, list(vocabulary.ids_)
        try:
            made = WordIds(words) if all(type(word) is str for word in words) else None
        except UnicodeEncodeError:
            made = None
        _MADE[vocabulary] = ids, made
    return made

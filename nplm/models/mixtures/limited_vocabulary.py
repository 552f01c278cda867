"""Back-off models of text restricted to a list of words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np

from nplm.models.ngrams.stages.mixing import LimitedTrie, mixed_trie
from nplm.models.ngrams.text_ngrams import TextNgrams
from nplm.models.ngrams.trie.work import Work

if TYPE_CHECKING:
    from nplm.text.lm.text_lm import TextLM


def limit_vocabulary(
    lm: TextLM,
    words: Iterable[object],
    *,
    mass_to: Literal["unknown", "words"] = "unknown",
    index: bool = True,
) -> TextLM:
    """Restrict a back-off model of text to a list of words.

    N-grams that have another word are dropped. The others keep their probability, and
    back-off weights are recomputed, so that the probabilities after every context sum
    to 1, as by SRILM's ``ngram -limit-vocab -renorm``. Dropped words become ``<unk>``.

    Parameters
    ----------
    lm : TextLM
        A text model over a `KneserNeyLM` or `BackoffLM`. It is not modified.
    words : iterable of hashable
        The words to keep; those that the model lacks are ignored. The boundary and the
        symbol for unknown words are always kept.
    mass_to : {"unknown", "words"}, default="unknown"
        What gets the probability of the dropped words as unigrams. "unknown" is
        ``<unk>``, for texts that have such words; in a model without it, unigrams are
        scaled to sum to 1, and so are the n-grams of a context that all words follow.
        "words" divides it evenly among all words that are kept, as SRILM does: for
        recognisers, whose texts have no other words.
    index : bool, default=True
        Whether to build the hash table for look-ups; see ``read_arpa``.

    Returns
    -------
    limited : TextLM
        A text model over a `BackoffLM`. The words keep their order.

    Raises
    ------
    TypeError
        If `words` is one string, or `lm` is not a text model over back-off n-grams.
    ValueError
        If the model has ids and no words, or none of `words`.

    Notes
    -----
    It is made in memory: about 50 bytes for each n-gram of the model. The command
    ``nplm prune --limit-vocab`` makes it on disk.

    References
    ----------
    A. Stolcke (2002). SRILM: an extensible language modeling toolkit. ICSLP.

    Examples
    --------
    >>> from nplm import KneserNeyLM, TextLM, limit_vocabulary
    >>> text = ["the cat sat on the mat", "a cat sat on a mat"]
    >>> lm = TextLM(KneserNeyLM(discount_fallback=0.5), n_context=2).fit(text)
    >>> small = limit_vocabulary(lm, ["the", "cat", "sat", "zebra"])
    >>> small.vocabulary_.words_.tolist()
    ['</s>', '<unk>', 'cat', 'sat', 'the']
    >>> small.next_words("the cat", k=1)[0]
    ['sat']
    """
    ngrams = limited(TextNgrams.of(lm), words, Work(), mass_to)
    return ngrams.text_lm(index=index)


def limited(
    ngrams: TextNgrams, words: Iterable[object], work: Work, mass_to: str = "unknown"
) -> TextNgrams:
    """Restrict n-grams to words, in memory or in a folder; see `limit_vocabulary`."""
    if isinstance(words, str):
        raise TypeError(f"words is a string, {words!r:.80}: pass a list of words.")
    if mass_to not in ("unknown", "words"):
        raise ValueError(f'mass_to must be "unknown" or "words", got {mass_to!r}.')
    known = ngrams.words
    kept_ids = {known.ids[word] for word in words if word in known.ids}
    if not kept_ids - {ngrams.boundary, known.unknown_id}:
        raise ValueError(
            f"the model has none of the words: it has {len(known)} words, "
            f"such as {known.words[-1]!r}. Are they spelled as the model's are?"
        )
    kept_ids.add(ngrams.boundary)
    if known.unknown_id is not None:
        kept_ids.add(known.unknown_id)
    ids = np.array(sorted(kept_ids), dtype=np.int32)
    smaller = ngrams.with_words(known.words_of(ids), known.unknown)
    kept = ids, smaller.words.unknown_id, mass_to == "words"
    trie = LimitedTrie(ngrams.trie, *kept)
    return smaller._replace(trie=mixed_trie([trie], [1.0], work))

"""Back-off models of text with fewer, more, or more probable words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nplm.base.array_types import Floats, Ids
from nplm.base.warnings import warn
from nplm.models.ngrams.stages.mixing import AlignedTrie, LimitedTrie, mixed_trie
from nplm.models.ngrams.text_ngrams import TextNgrams
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.context_trie import blocks_of_contexts
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


def boost_words(
    lm: TextLM,
    words: Iterable[object] | Mapping[Any, float],
    *,
    factor: float = 1.0,
    index: bool = True,
) -> TextLM:
    r"""Add words to a back-off model of text, or make words more probable.

    For names and terms that a recogniser is to expect. The words that the model lacks
    are added as unigrams, as probable as its rarest word. Then the odds of each word
    against the others are multiplied by its factor, after every context:

    .. math:: P'(w|c) = \frac{f_w P(w|c)}{\sum_v f_v P(v|c)}.

    Parameters
    ----------
    lm : TextLM
        A text model over a `KneserNeyLM` or `BackoffLM`. It is not modified.
    words : iterable of hashable, or mapping of hashable to float
        The words, or the factor of each. Factors are above 0.
    factor : float, default=1.0
        The factor of words without one of their own. 1 adds the words that the model
        lacks, and leaves the others as they are; below 1 words become rarer.
    index : bool, default=True
        Whether to build the hash table for look-ups; see ``read_arpa``.

    Returns
    -------
    boosted : TextLM
        A text model over a `BackoffLM`. New words have the last ids.

    Raises
    ------
    TypeError
        If `words` is no list, or `lm` is not a text model over back-off n-grams.
    ValueError
        If the model has ids and no words, there are no words, or a factor is not a
        number above 0.

    Warns
    -----
    UserWarning
        If the tokenizer of the model does not make some of the new words.

    Notes
    -----
    The result has the n-grams of the model and the new unigrams, and its probabilities
    sum to 1. New words take their probability from all unigrams, and back-off weights
    are recomputed. With factors, a back-off model stays one: with :math:`Z(c)` for the
    sum above, n-grams are divided by :math:`Z(c)`, and the back-off weight of a context
    is multiplied by :math:`Z(c') / Z(c)`, c' being the next shorter context.

    It is made in memory, as by `limit_vocabulary`. The command ``nplm convert --boost``
    makes it on disk.

    Examples
    --------
    >>> from nplm import KneserNeyLM, TextLM, boost_words
    >>> text = ["the cat sat on the mat", "a cat sat on a mat"]
    >>> lm = TextLM(KneserNeyLM(discount_fallback=0.5), n_context=2).fit(text)
    >>> boosted = boost_words(lm, {"zebra": 20, "mat": 9})
    >>> boosted.vocabulary_.words_.tolist()[-2:]
    ['the', 'zebra']
    >>> lm.next_words("the", k=1)[0], boosted.next_words("the", k=1)[0]
    (['cat'], ['mat'])
    """
    ngrams = boosted(TextNgrams.of(lm), words, Work(), factor)
    return ngrams.text_lm(index=index)


def boosted(
    ngrams: TextNgrams,
    words: Iterable[object] | Mapping[Any, float],
    work: Work,
    factor: float = 1.0,
) -> TextNgrams:
    """Add or boost words of n-grams, in memory or in a folder; see `boost_words`."""
    if isinstance(words, str) or not isinstance(words, Iterable):
        raise TypeError(f"words is {words!r:.80}: pass a list of words.")
    factors = dict(
        words if isinstance(words, Mapping) else dict.fromkeys(words, factor)
    )
    if not factors:
        raise ValueError("words is empty: pass the words to add or boost.")
    for word, its_factor in factors.items():
        if not (isinstance(its_factor, Real) and 0 < float(its_factor) < np.inf):
            raise ValueError(
                f"the factor of {word!r} must be a number above 0, got {its_factor!r}."
            )
    known = ngrams.words
    new = [word for word in factors if word not in known.ids]
    if ngrams.tokenizer is not None:
        split = ngrams.tokenizer.transform([str(word) for word in new])
        others = [pair for pair in zip(new, split) if pair[1] != [pair[0]]]
        if others:
            word, tokens = others[0]
            warn(
                f"The tokenizer of the model makes {tokens!r:.80} of the new word "
                f"{word!r}, so text that it splits never has {len(others):,} of the "
                f"{len(new):,} new words: give words as it makes them.",
                UserWarning,
            )
    more = ngrams.with_words([*known.words, *new], known.unknown)
    member = _WithNewWords(
        ngrams.trie, np.arange(len(known), dtype=np.int32), len(more.words)
    )
    trie = mixed_trie([member], [1.0], work)
    of_word = np.ones(trie.n_words)
    of_word[[more.words.ids[word] for word in factors]] = list(factors.values())
    _multiply(trie, of_word, work)
    return more._replace(trie=trie)


@dataclass(frozen=True, eq=False)
class _WithNewWords(AlignedTrie):
    """A trie with words that it lacks as unigrams, as probable as its rarest word."""

    @cached_property
    def unigrams(self) -> Floats:
        """The probability of each word as a unigram."""
        known = self.trie.prob[: self.trie.n_words].astype(np.float64)
        unigrams = np.full(self.n_words, known[known > 0].min(initial=1.0))
        unigrams[self.ids] = known
        return unigrams / unigrams.sum()

    def next_word_prob(self, X: Ids, y: Ids) -> Floats:
        return self.unigrams[y] if X.shape[1] == 0 else super().next_word_prob(X, y)


def _multiply(trie: BackoffTrie, factors: Floats, work: Work) -> None:
    """Multiply the odds of each word by its factor after every context."""
    total = np.ones(len(trie.context_word))
    for factor in np.unique(factors[factors != 1]):
        words = np.flatnonzero(factors == factor).astype(np.int32)
        total += (factor - 1) * trie.masses(words)
    parents = trie.parents(work)
    for first, last in blocks_of_contexts(trie.start, 0, len(total), work.block):
        contexts, ngrams = (
            slice(first, last),
            slice(*trie.start[[first, last]].tolist()),
        )
        n_ngrams = np.diff(trie.start[first : last + 1])
        changed = factors[trie.words[ngrams]] / np.repeat(total[contexts], n_ngrams)
        trie.prob[ngrams] = trie.prob[ngrams] * changed
        trie.bow[contexts] *= total[parents[contexts]] / total[contexts]
        work.release_pages(*trie.every_array)

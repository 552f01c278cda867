"""Look-ups by hashing: an n-gram's place depends on its words alone.

The walk down a tree waits for memory at every step, several times. Here a step is
one slot, its address known from the words. It is not taken where the slot before it
tells that there is no n-gram one word longer.
"""

from libc.stdint cimport int64_t, uint64_t

from nplm._kernels.ngrams._chains cimport (
    BLOCK, MAX_WORDS, N_CHAINS, Chains, begin, n_growing, prob_of,
)
from nplm._kernels.ngrams._tree cimport Tree

MAX_ORDER = MAX_WORDS


cdef class Table:
    """The slots of all levels, in one argument.

    Parameters
    ----------
    memory : ndarray of uint8
        Slots of 16 bytes, at the beginning of a line of the cache.
    slot_start : ndarray of int64, shape (order + 1,)
        Those of the n-grams of k + 1 words are from ``slot_start[k]`` to
        ``slot_start[k + 1]``; unigrams have none.
    prob, bow : ndarray of float32, shape (n_words,)
        Those of each word, as a unigram and as a context.
    """

    def __cinit__(
        self,
        const unsigned char[::1] memory,
        const int64_t[::1] slot_start,
        const float[::1] prob,
        const float[::1] bow,
    ):
        self.memory = memory
        self.slot_start = slot_start
        self.prob = prob
        self.bow = bow
        # Nothing is written through it.
        self.slots = <Slot*> &memory[0]


cdef inline uint64_t ngram_key(int word, uint64_t context_key) noexcept nogil:
    return hash_word(word) + MULTIPLIER * context_key


def context_keys(Tree tree, uint64_t[::1] keys):
    """Key of each context.

    Equivalent to ``keys[c] = sum(hash_word(w) * M**i for i, w in
    enumerate(reversed(words_of(c))))`` modulo 2**64.

    No twin: where a key is looked for is nobody's concern but this module's, and
    what is found there is tested against the twin of ``backoff_prob``.
    """
    cdef int level, parent, context
    cdef uint64_t power = 1
    with nogil:
        keys[0] = 0
        for level in range(<int> tree.level_start.shape[0] - 2):
            for parent in range(tree.level_start[level], tree.level_start[level + 1]):
                for context in range(
                    tree.child_start[parent], tree.child_start[parent + 1]
                ):
                    keys[context] = (
                        keys[parent] + hash_word(tree.context_word[context]) * power
                    )
            power *= MULTIPLIER


def fill_slots(
    Tree tree,
    const int[::1] parent,
    const float[::1] prob,
    const float[::1] bow,
    const uint64_t[::1] keys,
    const int64_t[::1] slot_start,
    unsigned char[::1] table,
    int64_t[::1] n_used,
):
    """Put a tree's n-grams and contexts of two words or more into an empty table.

    Its slots are those of `Table`, with key 0, probability -1 and weight 1. `n_used`
    is scratch, zeros, of ``order`` entries. Returns whether all levels kept a tenth
    of their slots empty.

    Equivalent to ``table[key(c, w)] = prob, bow[context(c, w)]``, with -1 for no
    probability and 1 for no weight.

    No twin: see ``context_keys``.
    """
    cdef Slot* slots = <Slot*> &table[0]
    cdef Slot* at
    cdef uint64_t pending[BLOCK]
    cdef int owner[BLOCK]
    cdef int order = <int> tree.level_start.shape[0] - 1
    cdef int level, longer, context, last, c, i, j, n
    cdef uint64_t bit
    cdef bint enough = True
    with nogil:
        for level in range(1, order):
            context = tree.level_start[level]
            i = tree.start[context]
            last = tree.start[tree.level_start[level + 1]]
            while i < last and enough:
                n = min(<int> BLOCK, last - i)
                for j in range(n):
                    while i + j >= tree.start[context + 1]:
                        context += 1
                    pending[j] = ngram_key(tree.words[i + j], keys[context])
                    NPLM_PREFETCH(home(
                        slots + slot_start[level],
                        slot_start[level + 1] - slot_start[level], pending[j],
                    ))
                for j in range(n):
                    at = put(slots, slot_start, level, pending[j], n_used)
                    at.prob = prob[i + j]
                i += n
                enough = has_room(slot_start, level, n_used)
            # Contexts of level + 1 words have the weights of these n-grams.
            i = tree.level_start[level + 1]
            while level + 1 < order and i < tree.level_start[level + 2] and enough:
                n = min(<int> BLOCK, tree.level_start[level + 2] - i)
                for j in range(n):
                    NPLM_PREFETCH(home(
                        slots + slot_start[level],
                        slot_start[level + 1] - slot_start[level], keys[i + j],
                    ))
                for j in range(n):
                    at = put(slots, slot_start, level, keys[i + j], n_used)
                    at.bow = bow[i + j]
                i += n
                enough = has_room(slot_start, level, n_used)
            if not enough:
                break
        # Filters: each slot tells the one of a word less that it is there. A
        # suffix may be missing from a pruned model: it gets a slot as well.
        for level in range(2, order):
            # A full table is searched for ever: no more is put where there is
            # no room.
            if not enough:
                break
            context = tree.level_start[level]
            i = tree.start[context]
            last = tree.start[tree.level_start[level + 1]]
            while i < last and enough:
                n = min(<int> BLOCK, last - i)
                for j in range(n):
                    while i + j >= tree.start[context + 1]:
                        context += 1
                    owner[j] = context
                    pending[j] = ngram_key(tree.words[i + j], keys[parent[context]])
                    NPLM_PREFETCH(home(
                        slots + slot_start[level - 1],
                        slot_start[level] - slot_start[level - 1], pending[j],
                    ))
                for j in range(n):
                    c = owner[j]
                    longer = level
                    while longer > 1:
                        longer -= 1
                        bit = filter_bit(hash_word(tree.context_word[c]))
                        c = parent[c]
                        n_used[0] = n_used[longer]
                        at = put(
                            slots, slot_start, longer,
                            ngram_key(tree.words[i + j], keys[c]), n_used,
                        )
                        at.key |= bit
                        if n_used[0] == n_used[longer]:
                            break
                        if not has_room(slot_start, longer, n_used):
                            enough = False
                            break
                i += n
            # The contexts a word shorter are in the table already: all fit.
            for i in range(
                tree.level_start[level + 1], tree.level_start[min(level + 2, order)]
            ):
                at = put(slots, slot_start, level - 1, keys[parent[i]], n_used)
                at.key |= filter_bit(hash_word(tree.context_word[i]))
    return enough


cdef inline Slot* put(
    Slot* slots, const int64_t[::1] slot_start, int level, uint64_t key,
    int64_t[::1] n_used,
) noexcept nogil:
    """Return the slot of a key, a new one if it has none."""
    cdef Slot* at = find_slot(
        slots + slot_start[level], slot_start[level + 1] - slot_start[level], key
    )
    if at.key == 0:
        at.key = tag(key)
        n_used[level] += 1
    return at


cdef inline bint has_room(
    const int64_t[::1] slot_start, int level, const int64_t[::1] n_used
) noexcept nogil:
    cdef int64_t n_slots = slot_start[level + 1] - slot_start[level]
    return n_used[level] + BLOCK < n_slots - n_slots // 10


cdef struct Keys:
    # Of each word that the chains have, and of the chains as far as they have grown.
    uint64_t word[1 + BLOCK * MAX_WORDS]
    uint64_t chain[N_CHAINS]


cdef void hash_words(Chains* chains, Keys* keys) noexcept nogil:
    """Hash the words, and let each chain have the key of its newest."""
    cdef int i, chain
    for i in range(chains.n_read):
        keys.word[i] = hash_word(chains.words[i])
    for i in range(chains.n_live):
        chain = chains.live[i]
        keys.chain[chain] = keys.word[chains.newest[chain]]


cdef void step(
    Chains* chains, Keys* keys, Table table, int k, uint64_t power, int n_context
) noexcept nogil:
    """Look the live chains up with one more word, the k-th of their contexts."""
    cdef Slot* slots = table.slots + table.slot_start[k]
    cdef uint64_t n_slots = table.slot_start[k + 1] - table.slot_start[k]
    cdef int n_longer = n_growing(k, n_context)
    cdef int i, chain, n_next = 0
    cdef Slot* at
    cdef bint known
    for i in range(chains.n_live):
        chain = chains.live[i]
        keys.chain[chain] += keys.word[chains.newest[chain] - k] * power
        NPLM_PREFETCH(home(slots, n_slots, keys.chain[chain]))
    # Without branches: whether an n-gram is there cannot be predicted.
    for i in range(chains.n_live):
        chain = chains.live[i]
        at = find_slot(slots, n_slots, keys.chain[chain])
        known = at.prob >= 0
        chains.prob[chain] = at.prob if known else chains.prob[chain]
        chains.n_words[chain] = k if known else chains.n_words[chain]
        chains.bow[k][chain] = at.bow
        chains.live[n_next] = chain
        # An empty slot has no bit set.
        n_next += (chain < n_longer) & (
            (at.key & filter_bit(keys.word[chains.newest[chain] - k - 1])) != 0
        )
    chains.n_live = n_next


def hashed_prob(
    Table table, const int[:, :] X, const int[:] y, double[::1] out
):
    """Probability of each next word: the same numbers as ``backoff_prob``.

    Equivalent to ``backoff_prob(...)``.

    No twin: see ``context_keys``.
    """
    cdef int n_context = <int> X.shape[1]
    cdef Chains chains
    cdef Keys keys
    cdef Py_ssize_t first = 0
    cdef uint64_t power
    cdef int n, j, k
    with nogil:
        while first < X.shape[0]:
            n = <int> min(<Py_ssize_t> BLOCK, X.shape[0] - first)
            begin(&chains, table.prob, table.bow, X, y, first, n)
            hash_words(&chains, &keys)
            power = 1
            for k in range(1, n_context + 1):
                power *= MULTIPLIER
                step(&chains, &keys, table, k, power, n_context)
            for j in range(n):
                out[first + j] = prob_of(&chains, j, n_context)
            first += n

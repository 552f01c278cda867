"""Look-ups by hashing: an n-gram's place depends on its words alone.

The walk down a tree waits for memory at every step, several times. Here a step is
one slot, its address known from the words; a block of windows takes each step
together, so their memory is fetched together. A step is not taken where the slot
before it tells that there is no n-gram one word longer.
"""

from libc.stdint cimport int64_t, uint64_t

from nplm._kernels.ngrams._tree cimport Tree

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define NPLM_PREFETCH(address) __builtin_prefetch(address)
    #else
    #define NPLM_PREFETCH(address) ((void) 0)
    #endif
    /* Odd, with no pattern in their bits: 2**64 over the golden ratio, and the
       multipliers of the SplitMix64 generator. */
    static const uint64_t MULTIPLIER = 0x9E3779B97F4A7C15U;
    static const uint64_t MIX1 = 0xBF58476D1CE4E5B9U;
    static const uint64_t MIX2 = 0x94D049BB133111EBU;
    static const uint64_t TAG = 0xFFFFFFFFFFFF0000U;
    """
    void NPLM_PREFETCH(const void*) noexcept nogil
    const uint64_t MULTIPLIER, MIX1, MIX2, TAG

cdef enum:
    BLOCK = 64
    MAX_WORDS = 16
    # Slots of 16 bytes to a line of the cache.
    BUCKET = 4

MAX_ORDER = MAX_WORDS


cdef struct Slot:
    # An n-gram and the context it makes. The key's lowest 16 bits are a filter:
    # those of the older words that make it one word longer are set. 0: empty.
    uint64_t key
    float prob  # negative: a context or a suffix, but no n-gram
    float bow


cdef inline uint64_t hash_word(int word) noexcept nogil:
    cdef uint64_t h = (<uint64_t> word + 1) * MULTIPLIER
    h = (h ^ (h >> 30)) * MIX1
    h = (h ^ (h >> 27)) * MIX2
    return h ^ (h >> 31)


cdef inline uint64_t filter_bit(uint64_t word_hash) noexcept nogil:
    return <uint64_t> 1 << (word_hash >> 60)


# The key of words w0 (the newest), w1, ... is the sum of hash_word(wi) M**i.


cdef inline uint64_t ngram_key(int word, uint64_t context_key) noexcept nogil:
    return hash_word(word) + MULTIPLIER * context_key


cdef inline uint64_t tag(uint64_t key) noexcept nogil:
    """What a slot keeps of a key; never 0."""
    return key & TAG if key & TAG else TAG


cdef inline Slot* home(Slot* slots, uint64_t n_slots, uint64_t key) noexcept nogil:
    """Return the bucket where the search for a key begins."""
    cdef uint64_t high = ((key ^ (key >> 32)) * MIX1) >> 32
    return slots + (high * (n_slots // BUCKET) >> 32) * BUCKET


cdef inline Slot* find_slot(Slot* slots, uint64_t n_slots, uint64_t key) noexcept nogil:
    """Return the slot of a key, or the empty one where it would be."""
    cdef Slot* at = home(slots, n_slots, key)
    cdef uint64_t wanted = tag(key)
    cdef int i, hit
    while True:
        # A bucket fills from its first slot on; without a branch to mispredict.
        hit = BUCKET
        for i in range(BUCKET - 1, -1, -1):
            hit = i if (at[i].key & TAG) == wanted or at[i].key == 0 else hit
        if hit < BUCKET:
            return at + hit
        at += BUCKET
        if at == slots + n_slots:
            at = slots


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

    `table` holds slots of 16 bytes; those of the n-grams of k + 1 words are from
    ``slot_start[k]`` to ``slot_start[k + 1]``. `n_used` is scratch, zeros, of
    ``order`` entries. Returns whether all levels kept a tenth of their slots
    empty.

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
        at.prob = -1
        at.bow = 1
        n_used[level] += 1
    return at


cdef inline bint has_room(
    const int64_t[::1] slot_start, int level, const int64_t[::1] n_used
) noexcept nogil:
    cdef int64_t n_slots = slot_start[level + 1] - slot_start[level]
    return n_used[level] + BLOCK < n_slots - n_slots // 10


def hashed_prob(
    unsigned char[::1] table,
    const int64_t[::1] slot_start,
    const float[::1] prob,
    const float[::1] bow,
    const int[:, :] X,
    const int[:] y,
    double[::1] out,
):
    """Probability of each next word: the same numbers as ``backoff_prob``.

    Unigrams and contexts of one word are read from `prob` and `bow` of the tree,
    where word w is at w and 1 + w.

    Equivalent to ``backoff_prob(...)``.

    No twin: see ``context_keys``.
    """
    cdef Slot* slots = <Slot*> &table[0]
    cdef int n_context = <int> X.shape[1]
    # Chain j is the n-gram of window j, its newest word first, and chain
    # BLOCK + j the context; both grow by one older word a step.
    cdef int words[BLOCK][MAX_WORDS]
    cdef uint64_t hashes[BLOCK][MAX_WORDS]
    cdef uint64_t key[2 * BLOCK]
    cdef Slot* found[MAX_WORDS][2 * BLOCK]
    cdef int live[2 * BLOCK]
    cdef int length[2 * BLOCK]
    cdef int context_chain[BLOCK]
    cdef uint64_t* chain
    cdef Slot* level_slots
    cdef uint64_t n_slots, power
    cdef Slot* at
    cdef Py_ssize_t first = 0
    cdef int n, n_live, n_next, i, j, k, w
    cdef bint follows
    cdef double scale
    with nogil:
        while first < X.shape[0]:
            n = <int> min(<Py_ssize_t> BLOCK, X.shape[0] - first)
            n_live = 0
            for j in range(n):
                words[j][0] = y[first + j]
                for k in range(1, n_context + 1):
                    words[j][k] = X[first + j, n_context - k]
                # In a stream the context of a window is the n-gram of the last.
                follows = j > 0
                for k in range(n_context if follows else 0):
                    follows = follows and words[j][k + 1] == words[j - 1][k]
                hashes[j][0] = hash_word(words[j][0])
                for k in range(1, n_context + 1):
                    hashes[j][k] = (
                        hashes[j - 1][k - 1] if follows else hash_word(words[j][k])
                    )
                context_chain[j] = j - 1 if follows else BLOCK + j
                for i in range(1 if follows else 2):
                    w = j + i * BLOCK
                    length[w] = 1
                    key[w] = hashes[j][i]
                    live[n_live] = w
                    n_live += n_context > i
            power = MULTIPLIER
            for k in range(1, n_context + 1):
                # All live chains have k words, and may have k + 1.
                level_slots = slots + slot_start[k]
                n_slots = slot_start[k + 1] - slot_start[k]
                for i in range(n_live):
                    w = live[i]
                    chain = &hashes[w & (BLOCK - 1)][w >= BLOCK]
                    key[w] += chain[k] * power
                    NPLM_PREFETCH(home(level_slots, n_slots, key[w]))
                n_next = 0
                for i in range(n_live):
                    w = live[i]
                    at = find_slot(level_slots, n_slots, key[w])
                    found[k][w] = at
                    length[w] += at.key != 0
                    live[n_next] = w
                    # The context ends a word before the n-gram does.
                    if at.key != 0 and k + 1 + (w >= BLOCK) <= n_context:
                        chain = &hashes[w & (BLOCK - 1)][w >= BLOCK]
                        n_next += (at.key & filter_bit(chain[k + 1])) != 0
                n_live = n_next
                power *= MULTIPLIER
            for j in range(n):
                k = length[j] - 1
                while k > 0 and found[k][j].prob < 0:
                    k -= 1
                # Weights of the contexts of more than k words, the longest first.
                scale = 1
                w = context_chain[j]
                for i in range(min(length[w], n_context), k, -1):
                    scale *= found[i - 1][w].bow if i > 1 else bow[1 + words[j][1]]
                out[first + j] = scale * (
                    found[k][j].prob if k > 0 else prob[words[j][0]]
                )
            first += n

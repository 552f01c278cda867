"""Build and search a hash table of n-grams.

A walk down a trie waits for memory several times per step. In a hash table a step reads
one slot, whose address depends only on the words. A step is skipped if the filter of
the previous slot shows that no n-gram is one word longer.
"""

from libc.stdint cimport int64_t, uint16_t, uint64_t

from nplm._kernels.ngrams._chains cimport (
    BLOCK, MAX_WORDS, N_CHAINS, Chains, begin, n_growing, prob_of,
)
from nplm._kernels.ngrams._trie cimport Trie

MAX_ORDER = MAX_WORDS

cdef enum:
    # Number of n-grams inserted together.
    N_PUT = 64


cdef class Table:
    """The arrays of a hash table, in one argument.

    Parameters
    ----------
    memory : ndarray of uint8
        Slots of 16 bytes, aligned to cache lines.
    slot_start : ndarray of int64, shape (order + 1,)
        The slots of the n-grams of k + 1 words are those from ``slot_start[k]`` to
        ``slot_start[k + 1]``; unigrams have none.
    prob, bow : ndarray of float32, shape (n_words,)
        Probability of each word as a unigram, and its back-off weight as a context.
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
        # Read only: nothing is written through this pointer.
        self.slots = <Slot*> &memory[0]


cdef inline uint64_t ngram_key(int word, uint64_t context_key) noexcept nogil:
    return hash_word(word) + MULTIPLIER * context_key


def context_keys(
    Trie trie, const int[::1] parent, int level, int first, int last, uint64_t[::1] keys
):
    """Compute the keys of contexts ``first <= c < last``, all of `level` words.

    The keys of the shorter contexts must be filled already.

    Equivalent to ``keys[c] = sum(hash_word(w) * M**i for i, w in
    enumerate(reversed(words_of(c))))`` modulo 2**64.

    No twin: the layout of the table is private to this module, and the probabilities
    found in it are tested against the twin of ``backoff_prob``.
    """
    cdef int _, context
    cdef uint64_t power = 1
    with nogil:
        if level == 0:
            keys[0] = 0
            first = last
        for _ in range(level - 1):
            power *= MULTIPLIER
        for context in range(first, last):
            keys[context] = (
                keys[parent[context]] + hash_word(trie.context_word[context]) * power
            )


cdef class Window:
    """A contiguous range of the slots of a level, or all of them.

    n-grams whose search begins before the window are not inserted, and neither are
    those that overflow its end. After the first slot that stays empty, the slots of the
    window are the same as in the whole level.

    Parameters
    ----------
    memory : ndarray of uint8
        Slots of the window, as in `Table`; empty ones have key 0, probability -1 and
        weight 1.
    n_slots : int
        Number of slots of the level.
    first : int
        First slot of the window.
    """

    cdef unsigned char[::1] memory
    cdef Slot* slots
    cdef uint64_t n_slots, first, size
    cdef readonly int64_t n_used

    def __cinit__(self, unsigned char[::1] memory, uint64_t n_slots, uint64_t first):
        self.memory = memory
        self.slots = <Slot*> &memory[0]
        self.n_slots, self.first = n_slots, first
        self.size = memory.shape[0] // sizeof(Slot)
        self.n_used = 0

    cdef inline bint room(self) noexcept nogil:
        """Whether a tenth of the slots stays empty after one more block."""
        return self.n_used + N_PUT < <int64_t> (self.size - self.size // 10)

    cdef inline uint64_t place_of(self, uint64_t key) noexcept nogil:
        """Return where the search for a key begins; `size` or more is outside."""
        cdef uint64_t number = home_number(self.n_slots, key)
        if number < self.first:
            number += self.n_slots
        return number - self.first

    cdef inline Slot* put(self, uint64_t key) noexcept nogil:
        """Return the slot of a key, inserting it if needed; NULL outside the window."""
        cdef uint64_t place = self.place_of(key)
        cdef uint64_t wanted = tag(key)
        cdef int hit
        if place >= self.size:
            return NULL
        while True:
            hit = place_in_bucket(self.slots + place, wanted)
            if hit < BUCKET:
                break
            place += BUCKET
            if place == self.size:
                if self.size < self.n_slots:
                    return NULL
                place = 0
        if self.slots[place + hit].key == 0:
            self.slots[place + hit].key = wanted
            self.n_used += 1
        return self.slots + place + hit


cdef struct Block:
    # n-grams inside the window, whose slots are prefetched together.
    int n
    uint64_t keys[N_PUT]
    int which[N_PUT]
    int context[N_PUT]
    uint64_t filters[N_PUT]


cdef inline void gather(
    Block* block, Window window, uint64_t key, int which, int context, uint64_t filters
) noexcept nogil:
    """Add an n-gram to a block if it is inside the window."""
    cdef uint64_t place = window.place_of(key)
    block.keys[block.n] = key
    block.which[block.n] = which
    block.context[block.n] = context
    block.filters[block.n] = filters
    if place < window.size:
        NPLM_PREFETCH(window.slots + place)
        block.n += 1


cdef inline bint put_block(
    Block* block, const float[::1] prob, Window window
) noexcept nogil:
    """Insert the n-grams of a block; return whether the window has room for more."""
    cdef Slot* at
    cdef int j
    for j in range(block.n):
        at = window.put(block.keys[j])
        if at != NULL:
            at.prob = prob[block.which[j]]
            at.key |= block.filters[j]
    block.n = 0
    return window.size < window.n_slots or window.room()


def put_ngrams(
    Trie trie,
    const uint64_t[::1] keys,
    const float[::1] prob,
    int first,
    int last,
    Window window,
    uint16_t[::1] filters,
    int[:, ::1] missing,
):
    """Insert the n-grams of the contexts ``first <= c < last``, all of one level.

    The filter of an n-gram has the bits of its extensions by one older word, (child of
    c, w). A pruned model may lack the suffix (c, w) of an extension: the context, word
    and filter of the suffix are written to `missing`, which needs space for all n-grams
    of the children. `filters` is scratch of ``n_words`` zeros, and is left zero.
    Returns the number of missing suffixes, or -1 if the window has all slots of the
    level and they do not suffice.

    Equivalent to ``table[key(c, w)].prob = prob[...]`` and, for each child d of c,
    ``table[key(c, w)].key |= filter_bit(oldest word of d)`` where w follows d.

    No twin: see ``context_keys``.
    """
    cdef Block block
    cdef int context, child, i, word
    cdef int first_child, last_child
    cdef int n_missing = 0
    cdef int n_open  # suffixes in `filters`
    cdef uint16_t bit
    cdef bint enough = True
    block.n = 0
    with nogil:
        for context in range(first, last):
            n_open = 0
            first_child = trie.child_start[context]
            last_child = trie.child_start[context + 1]
            for child in range(first_child, last_child):
                bit = <uint16_t> filter_bit(hash_word(trie.context_word[child]))
                for i in range(trie.start[child], trie.start[child + 1]):
                    word = trie.words[i]
                    n_open += filters[word] == 0
                    filters[word] |= bit
            for i in range(trie.start[context], trie.start[context + 1]):
                word = trie.words[i]
                n_open -= filters[word] != 0
                gather(
                    &block, window, ngram_key(word, keys[context]), i, context,
                    filters[word],
                )
                filters[word] = 0
                if block.n == N_PUT:
                    enough = enough and put_block(&block, prob, window)
            if n_open > 0:
                for i in range(trie.start[first_child], trie.start[last_child]):
                    word = trie.words[i]
                    if filters[word] != 0:
                        missing[0, n_missing] = context
                        missing[1, n_missing] = word
                        missing[2, n_missing] = filters[word]
                        filters[word] = 0
                        n_missing += 1
            if not enough:
                break
        enough = enough and put_block(&block, prob, window)
    return n_missing if enough else -1


def put_contexts(
    Trie trie,
    const uint64_t[::1] keys,
    const float[::1] bow,
    int first,
    int last,
    Window window,
):
    """Insert the contexts ``first <= c < last``, all of one level.

    Returns False if the window has all slots of the level and they do not suffice.

    Equivalent to ``table[key(c)].bow = bow[c]`` and, for each child d of c,
    ``table[key(c)].key |= filter_bit(oldest word of d)``.

    No twin: see ``context_keys``.
    """
    cdef Block block
    cdef Slot* at
    cdef int context = first
    cdef int j, own, child
    cdef bint enough = True
    with nogil:
        while context < last and enough:
            block.n = 0
            while context < last and block.n < N_PUT:
                gather(&block, window, keys[context], context, context, 0)
                context += 1
            for j in range(block.n):
                at = window.put(block.keys[j])
                if at == NULL:
                    continue
                at.bow = bow[block.which[j]]
                own = block.which[j]
                for child in range(trie.child_start[own], trie.child_start[own + 1]):
                    at.key |= filter_bit(hash_word(trie.context_word[child]))
            enough = window.size < window.n_slots or window.room()
    return bool(enough)


def put_suffixes(
    Trie trie,
    const int[::1] parent,
    const uint64_t[::1] keys,
    const int[:, ::1] missing,
    Window window,
    int[:, ::1] made,
):
    """Insert suffixes that the trie lacks, given by context, word and filter.

    A suffix that gets a new slot has a suffix in turn, whose context, word and filter
    are written to `made`, which has the size of `missing`. Returns their number, or -1
    if the window has all slots of the level and they do not suffice.

    Equivalent to ``table[key(c, w)].key |= filters``.

    No twin: see ``context_keys``.
    """
    cdef Block block
    cdef Slot* at
    cdef Py_ssize_t i
    cdef int context
    cdef int64_t n_before
    cdef int n_made = 0
    cdef bint enough = True
    with nogil:
        for i in range(missing.shape[1]):
            context = missing[0, i]
            block.n = 0
            gather(
                &block, window, ngram_key(missing[1, i], keys[context]),
                missing[1, i], context, <uint64_t> missing[2, i],
            )
            if block.n == 0:
                continue
            n_before = window.n_used
            at = window.put(block.keys[0])
            if at != NULL:
                at.key |= block.filters[0]
            if window.n_used > n_before:
                made[0, n_made] = parent[context]
                made[1, n_made] = missing[1, i]
                made[2, n_made] = <int> filter_bit(
                    hash_word(trie.context_word[context])
                )
                n_made += 1
            enough = window.size < window.n_slots or n_made == 0 or window.room()
            if not enough:
                break
    return n_made if enough else -1


cdef struct Keys:
    # Keys of each word read, and of each chain so far.
    uint64_t word[1 + BLOCK * MAX_WORDS]
    uint64_t chain[N_CHAINS]
    # In a step, the current bucket of each chain, and the chains not found yet.
    Slot* bucket[N_CHAINS]
    int sought[N_CHAINS]


cdef void hash_words(Chains* chains, Keys* keys) noexcept nogil:
    """Hash the words, and set the key of each chain to that of its newest word."""
    cdef int i, chain
    for i in range(chains.n_read):
        keys.word[i] = hash_word(chains.words[i])
    for i in range(chains.n_live):
        chain = chains.live[i]
        keys.chain[chain] = keys.word[chains.newest[chain]]


cdef void step(
    Chains* chains, Keys* keys, Table table, int k, uint64_t power, int n_context
) noexcept nogil:
    """Look up the live chains extended by the k-th word of their contexts."""
    cdef Slot* slots = table.slots + table.slot_start[k]
    cdef uint64_t n_slots = table.slot_start[k + 1] - table.slot_start[k]
    cdef int n_longer = n_growing(k, n_context)
    cdef int i, chain, hit, n_next = 0
    cdef int n_sought = chains.n_live, n_missed
    cdef Slot* at
    for i in range(n_sought):
        chain = chains.live[i]
        keys.chain[chain] += keys.word[chains.newest[chain] - k] * power
        keys.bucket[chain] = home(slots, n_slots, keys.chain[chain])
        keys.sought[i] = chain
        NPLM_PREFETCH(keys.bucket[chain])
    # Branch-free: it is unpredictable whether an n-gram is there, and in which bucket.
    # Chains that continue in the next bucket do so together.
    while n_sought > 0:
        n_missed = 0
        for i in range(n_sought):
            chain = keys.sought[i]
            hit = place_in_bucket(keys.bucket[chain], tag(keys.chain[chain]))
            keys.sought[n_missed] = chain
            n_missed += hit == BUCKET
            at = <Slot*> nplm_either(
                hit < BUCKET, keys.bucket[chain] + hit, NPLM_NOTHING
            )
            chains.prob[k][chain] = at.prob
            chains.n_words[chain] += (k - chains.n_words[chain]) * (at.prob >= 0)
            chains.bow[k + 1][chain] = at.bow
            chains.live[n_next] = chain
            # The filter of an empty slot has no bits set.
            n_next += (chain < n_longer) & (
                (at.key & filter_bit(keys.word[chains.newest[chain] - k - 1])) != 0
            )
        n_sought = n_missed
        for i in range(n_sought):
            chain = keys.sought[i]
            at = next_bucket(slots, n_slots, keys.bucket[chain])
            # The table of a damaged file may have no empty slot to end the search.
            if at == home(slots, n_slots, keys.chain[chain]):
                at = <Slot*> NPLM_NOTHING
            keys.bucket[chain] = at
            NPLM_PREFETCH(at)
    chains.n_live = n_next


def hashed_prob(
    Table table, const int[:, :] X, const int[:] y, double[::1] out
):
    """Compute the probability of each next word.

    Equivalent to ``backoff_prob(...)``, bit for bit.

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

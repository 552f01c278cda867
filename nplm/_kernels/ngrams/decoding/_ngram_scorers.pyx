"""Look up the n-grams of words that follow one another, for word-by-word scorers.

The look-ups are those of ``windows_prob``: for sentences scored together in its blocks,
for single words and sentences with less to prepare.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport log
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from nplm._kernels._ids cimport id_below
from nplm._kernels.ngrams._bits cimport NPLM_PREFETCH
from nplm._kernels.ngrams._chains cimport BLOCK, MAX_WORDS, one_of
from nplm._kernels.ngrams._hashed cimport (
    MULTIPLIER, Bucket, Slot, Table, find_long_from, found_from, hash_word, home,
    slot_of,
)
from nplm._kernels.ngrams._quantized cimport (
    FEW, Level, QuantizedTrie, bow_at, children, expect_children, expect_sample,
    find_record, length_of, n_searched, prob_at, word_at,
)
from nplm._kernels.ngrams._trie cimport Ngrams
from nplm._kernels.ngrams.decoding._word_ids cimport (
    BATCH, WordIds, encodable, utf8_of,
)
from nplm._kernels.ngrams.decoding._word_scorer cimport (
    CHUNK, Chains, Context, WordScorer,
)


cdef struct Windows:
    # Windows of words that follow one another, after the last one of those before.
    int n
    int X[(1 + BLOCK) * MAX_WORDS]
    int y[BLOCK]
    int before  # the word before the next one, or a boundary


cdef class NgramScorer(WordScorer):
    """What the scorers of n-grams share.

    No twin: see `WordScorer`.
    """

    cdef Ngrams ngrams

    def __cinit__(
        self, Ngrams ngrams, int boundary, ids, int n_words, int unknown, bint closed
    ):
        check_n_words(n_words, ngrams.prob.shape[0])
        self.ngrams = ngrams

    def fill_texts(
        self, WordIds words not None, list texts not None, bint bos, bint eos,
        double[::1] out,
    ):
        # The words are looked up as windows are: a block of windows has the words of
        # several sentences. An empty context, without a boundary, is that of no window.
        cdef Windows windows
        cdef Py_ssize_t sentences[BLOCK]
        cdef int ids[BATCH + 1]
        cdef int n, n_ids, j
        cdef Py_ssize_t i, size, at
        cdef const unsigned char* data
        if not bos or out.shape[0] != len(texts):
            WordScorer.fill_texts(self, words, texts, bos, eos, out)
            return
        windows.n = 0
        for i in range(out.shape[0]):
            text = encodable(texts[i])
            data = utf8_of(text, &size)
            out[i], at, n = 0, 0, BATCH
            windows.before = self.boundary
            while n == BATCH:
                n = self.next_ids(words, data, size, &at, ids)
                n_ids = n
                if eos and n < BATCH:
                    ids[n] = self.boundary
                    n_ids += 1
                for j in range(n_ids):
                    sentences[windows.n] = i
                    self.add_window(&windows, ids[j])
                    if windows.n == BLOCK:
                        self.add_up(&windows, sentences, out)
            PyErr_CheckSignals()
        self.add_up(&windows, sentences, out)

    cdef inline void add_up(
        self, Windows* windows, const Py_ssize_t* sentences, double[::1] out
    ) noexcept nogil:
        """Add the log-probabilities of windows to those of their sentences."""
        cdef double log_prob[BLOCK]
        cdef int n = windows.n, j
        self.look_up_windows(windows, log_prob, NULL)
        for j in range(n):
            out[sentences[j]] += log_prob[j]

    def fill_tokens(
        self, const int[::1] ids, const int64_t[::1] lengths, bint bos, bint eos,
        double[::1] log_prob, int[::1] orders,
    ):
        # As windows; see `fill_texts`.
        cdef Windows windows
        cdef Py_ssize_t i = 0, j, out = 0, sentence
        if not bos or log_prob.shape[0] == 0:
            WordScorer.fill_tokens(self, ids, lengths, bos, eos, log_prob, orders)
            return
        windows.n = 0
        with nogil:
            for sentence in range(lengths.shape[0]):
                windows.before = self.boundary
                for j in range(lengths[sentence] + eos):
                    if j < lengths[sentence]:
                        self.add_window(&windows, id_below(&ids[i], self.n_words))
                        i += 1
                    else:
                        self.add_window(&windows, self.boundary)
                    if windows.n == BLOCK:
                        self.look_up_windows(&windows, &log_prob[out], &orders[out])
                        out += BLOCK
            if windows.n > 0:
                self.look_up_windows(&windows, &log_prob[out], &orders[out])

    cdef inline void add_window(self, Windows* windows, int id) noexcept nogil:
        """Add the window of a word after the one before it."""
        cdef int n_context = self.n_context, before = windows.before, k
        cdef int* last = windows.X + windows.n * n_context
        cdef int* row = last + n_context
        for k in range(n_context - 1):
            # No context reaches back over a boundary.
            row[k] = before if before == self.boundary else last[k + 1]
        row[n_context - 1] = before
        windows.y[windows.n] = windows.before = id
        windows.n += 1

    cdef inline void look_up_windows(
        self, Windows* windows, double* log_prob, int* orders
    ) noexcept nogil:
        """Compute the log-probabilities of windows, and remove these."""
        cdef int n_context = self.n_context, n = windows.n, j
        self.ngrams.look_up(
            windows.X + n_context, n_context, windows.y, n, log_prob, orders
        )
        for j in range(n):
            log_prob[j] = log(log_prob[j])
        memcpy(windows.X, windows.X + n * n_context, n_context * sizeof(int))
        windows.n = 0

    cdef inline bint lacks(
        self, const Context* context, const Chains* chains, int j, int k, bint follow
    ) noexcept nogil:
        """Whether it is known that no n-gram has word j and the `k` words before it.

        The table then lacks these words as a context. Contexts that are not n-grams
        themselves may be there nevertheless.
        """
        return self.closed and k > (
            chains.n_found[j - 1] if follow and j > 0 else context.n_found
        )


cdef class HashedWordScorer(NgramScorer):
    """Word-by-word scorer of a hash table of n-grams; see `WordScorer`.

    No twin: see `WordScorer`.
    """

    cdef Table table  # owns the memory of the pointers
    cdef Bucket* buckets
    cdef const int64_t* bucket_start

    def __cinit__(
        self, Table table, int boundary, ids, int n_words, int unknown,
        bint closed,
    ):
        self.table = table
        self.buckets, self.bucket_start = table.buckets, &table.bucket_start[0]
        self.prob, self.bow = &table.prob[0], &table.bow[0]
        self.find_start()

    cdef void look_up(
        self, const Context* context, const int* ids, int n, bint follow,
        Chains* chains,
    ) noexcept nogil:
        # The compiler makes a simpler function of one word.
        if n == 1:
            self.look_up_words(context, ids, 1, True, chains)
        else:
            self.look_up_words(context, ids, n, follow, chains)

    cdef inline void look_up_words(
        self, const Context* context, const int* ids, int n, bint follow,
        Chains* chains,
    ) noexcept nogil:
        # In common steps: the memory of a step is prefetched for all words.
        cdef uint64_t keys[CHUNK + 1]
        cdef Bucket* bucket[CHUNK + 1]
        cdef int live[CHUNK + 1]
        cdef int n_before = context.n_words, n_context = self.n_context
        cdef int n_live = 0, n_next, i, j, k, before, goes
        cdef uint64_t power = MULTIPLIER, n_buckets, key, older
        cdef Bucket* buckets = self.buckets + self.bucket_start[1]
        cdef Bucket* longer
        cdef Bucket* after
        cdef Bucket* at
        cdef const Slot* slot
        cdef int hits
        cdef float prob
        n_buckets = self.bucket_start[2] - self.bucket_start[1]
        for k in range(n_before):
            chains.hashes[n_before - 1 - k] = context.hashes[k]
        for j in range(n):
            keys[n_live] = chains.hashes[n_before + j] = hash_word(ids[j])
            chains.prob[j], chains.bow[j][0] = self.prob[ids[j]], self.bow[ids[j]]
            chains.known[j], chains.n_found[j] = 0, 1
            before = n_before + (j if follow else 0)
            if before > 0 and not self.lacks(context, chains, j, 1, follow):
                keys[n_live] += chains.hashes[before - 1] * MULTIPLIER
                bucket[n_live] = home(buckets, n_buckets, keys[n_live])
                live[n_live] = j
                n_live += 1
        # Together, as `expect_live` of windows.
        for i in range(n_live):
            NPLM_PREFETCH(bucket[i])
        for k in range(1, n_context):
            longer = self.buckets + self.bucket_start[k + 1]
            n_buckets = self.bucket_start[k + 2] - self.bucket_start[k + 1]
            power *= MULTIPLIER
            n_next = 0
            # Branch-free, as `step` of windows.
            for i in range(n_live):
                j, key = live[i], keys[i]
                at = found_from(bucket[i], key, buckets, longer, &hits)
                slot = slot_of(at, hits)
                prob = slot.prob
                chains.known[j] += (k - chains.known[j]) * (prob >= 0)
                # With a branch, a processor goes on before it has read the number, which
                # takes less time for a single word.
                if n == 1:
                    chains.prob[j] = prob if prob >= 0 else chains.prob[j]
                else:
                    chains.prob[j] = one_of(prob >= 0, prob, chains.prob[j])
                chains.bow[j][k] = slot.bow
                chains.n_found[j] = k + (hits != 0)
                before = n_before + (j if follow else 0)
                # Without an older word a hash is read that is not used.
                older = chains.hashes[before - k - (before > k)]
                key += older * power
                after = home(longer, n_buckets, key)
                goes = (before > k) & <int> (slot.low >> (older >> 60) & 1) & (
                    not self.lacks(context, chains, j, k + 1, follow)
                )
                live[n_next], keys[n_next], bucket[n_next] = j, key, after
                n_next += goes
            for i in range(n_next):
                NPLM_PREFETCH(bucket[i])
            n_live, buckets = n_next, longer
        for i in range(n_live):
            j = live[i]
            prob = find_long_from(
                bucket[i], buckets, self.buckets + self.bucket_start[n_context + 1],
                keys[i],
            )
            if prob >= 0:
                chains.prob[j], chains.known[j] = prob, n_context

    cdef void prefetch(self, const Context* context, int id) noexcept nogil:
        cdef uint64_t key = hash_word(id), power = MULTIPLIER
        cdef int k, n = context.n_found if self.closed else context.n_words
        NPLM_PREFETCH(self.prob + id)
        NPLM_PREFETCH(self.bow + id)
        # A state may be that of another model.
        for k in range(1, min(n, self.n_context) + 1):
            key += context.hashes[k - 1] * power
            power *= MULTIPLIER
            NPLM_PREFETCH(home(
                self.buckets + self.bucket_start[k],
                self.bucket_start[k + 1] - self.bucket_start[k], key,
            ))


cdef class QuantizedWordScorer(NgramScorer):
    """Word-by-word scorer of a quantized trie; see `WordScorer`.

    No twin: see `WordScorer`.
    """

    cdef QuantizedTrie trie  # owns the memory of the pointers
    cdef const int64_t* bigrams

    def __cinit__(
        self, QuantizedTrie trie, int boundary, ids, int n_words, int unknown,
        bint closed,
    ):
        self.trie = trie
        self.prob, self.bow = &trie.prob[0], &trie.bow[0]
        self.bigrams = &trie.start[0]
        self.find_start()

    cdef void look_up(
        self, const Context* context, const int* ids, int n, bint follow,
        Chains* chains,
    ) noexcept nogil:
        cdef int words[MAX_WORDS + CHUNK + 1]
        cdef int64_t first[CHUNK + 1]
        cdef int64_t length[CHUNK + 1]
        cdef int live[CHUNK + 1]
        cdef int n_before = context.n_words
        cdef int n_live = n, n_next, i, j, k, before
        cdef int64_t at, last
        cdef const Level* level
        cdef float prob
        for k in range(n_before):
            words[n_before - 1 - k] = context.words[k]
            chains.hashes[n_before - 1 - k] = context.hashes[k]
        for j in range(n):
            words[n_before + j] = ids[j]
            chains.hashes[n_before + j] = hash_word(ids[j])
            chains.prob[j], chains.bow[j][0] = self.prob[ids[j]], self.bow[ids[j]]
            chains.known[j], chains.n_found[j] = 0, 1
            first[j] = self.bigrams[ids[j]]
            length[j] = length_of(first[j], self.bigrams[ids[j] + 1])
            live[j] = j
        for k in range(1, self.n_context + 1):
            level = &self.trie.level[k - 1]
            n_next = 0
            for i in range(n_live):
                j = live[i]
                before = n_before + (j if follow else 0)
                # Offsets of a damaged file may be outside the records of the level.
                if not (
                    before >= k and length[j] > 0 and first[j] + length[j] <= level.n
                ) or self.lacks(context, chains, j, k, follow):
                    continue
                length[j] = n_searched(length[j], words[before - k])
                if k < self.n_context:
                    expect_sample(level, first[j])
                live[n_next] = j
                n_next += 1
            n_live, n_next = n_next, 0
            if n_live > 1:
                self.narrow(level, words, n_before - k, follow, live, n_live, first,
                            length)
            elif n_live == 1:
                j = live[0]
                narrow_one(
                    level, words[n_before + (j if follow else 0) - k], &first[j],
                    &length[j],
                )
            # At once with the records, which are few now.
            for i in range(n_live if k < self.n_context else 0):
                expect_children(level, first[live[i]])
            for i in range(n_live):
                j = live[i]
                before = n_before + (j if follow else 0)
                at = find_record(level, first[j], length[j], words[before - k])
                if word_at(level, at) != words[before - k]:
                    continue
                prob = prob_at(level, at)
                if prob >= 0:
                    chains.prob[j], chains.known[j] = prob, k
                if k == self.n_context:
                    continue
                chains.bow[j][k] = bow_at(level, at)
                chains.n_found[j] = k + 1
                children(level, at, &first[j], &last)
                length[j] = length_of(first[j], last)
                live[n_next] = j
                n_next += 1
            n_live = n_next

    cdef void prefetch(self, const Context* context, int id) noexcept nogil:
        NPLM_PREFETCH(self.bigrams + id)
        NPLM_PREFETCH(self.prob + id)
        NPLM_PREFETCH(self.bow + id)

    cdef void narrow(
        self, const Level* level, const int* words, int oldest, bint follow,
        const int* live, int n_live, int64_t* first, int64_t* length,
    ) noexcept nogil:
        """Halve the ranges of the live words in turn, and prefetch their middles."""
        cdef int64_t half
        cdef int i, j
        cdef bint many = True
        while many:
            many = False
            for i in range(n_live):
                j = live[i]
                half = length[j] >> 1
                if length[j] > FEW:
                    if word_at(level, first[j] + half) <= words[
                        oldest + (j if follow else 0)
                    ]:
                        first[j] += half
                    length[j] -= half
                    many = True
                half = first[j] + (length[j] >> 1)
                NPLM_PREFETCH(level.records + (half * level.width >> 3))


cdef inline void narrow_one(
    const Level* level, int word, int64_t* first, int64_t* length
) noexcept nogil:
    """Halve the range of a word, while both of the next middles are fetched."""
    cdef int64_t half, quarter, middle
    while length[0] > FEW:
        half = length[0] >> 1
        quarter = half >> 1
        NPLM_PREFETCH(level.records + ((first[0] + quarter) * level.width >> 3))
        NPLM_PREFETCH(level.records + ((first[0] + half + quarter) * level.width >> 3))
        middle = first[0] + half
        first[0] = middle if word_at(level, middle) <= word else first[0]
        length[0] -= half


cdef int check_n_words(int n_words, Py_ssize_t n_known) except -1:
    if n_words > n_known:
        raise ValueError(f"n_words={n_words}, but the n-grams have {n_known} words")
    return 0

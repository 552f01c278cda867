"""Look-ups in the binary files of KenLM's ``build_binary``, as they are.

See ``nplm.formats.kenlm_files`` for their layout. Probabilities and back-off weights stay
float32 of base 10, and are added in KenLM's order, so scores have its bits. Whatever is
in a file, nothing outside of it is read.

An id of nplm is KenLM's, without ``<s>``: the boundary is ``</s>`` as the next word, and
``<s>`` in a context.
"""

from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.math cimport pow
from libc.stdint cimport int64_t, uint64_t

import numpy as np

from nplm._kernels._ids cimport checked_id
from nplm._kernels.ngrams._bits cimport NPLM_PREFETCH, read_bits
from nplm._kernels.ngrams._chains cimport MAX_WORDS
from nplm._kernels.ngrams._hashed cimport hash_word
from nplm._kernels.ngrams._trie cimport Ngrams
from nplm._kernels.ngrams.decoding._kenlm_layout cimport (
    ENTRY, MIDDLE_ENTRY, NO_EXTENSION, SIGN, UNIGRAM, Buckets, Level, at_byte, bits_of,
    bow_at, extensions, find_key, float_of, longer_key, murmur_hash, place_of, prob_at,
    read32, read64, table_at,
)
from nplm._kernels.ngrams.decoding._word_ids cimport Ids
from nplm._kernels.ngrams.decoding._word_scorer cimport (
    CHUNK, Chains, Context, WordScorer, log10_of,
)

cdef struct Search:
    # Words, and the older ones: `older[j][-k]` is word k before word j.
    int n
    int words[CHUNK + 1]
    const int* older[CHUNK + 1]
    int n_older[CHUNK + 1]
    # How many of these can matter; not known before the word before was looked up.
    const int* limit[CHUNK + 1]


cdef class KenlmNgrams(Ngrams):
    """The n-grams of a file of KenLM.

    Parameters
    ----------
    memory : ndarray of uint8
        The file.
    words : tuple of int
        Where the table of words begins, its number of entries, and the number of words.
    unigrams : int
        Where the unigrams begin.
    levels : list of tuple
        For the n-grams of 2, 3, ... words where they begin, and, of hash tables, the
        number of entries. Of tries, their number, the bits of a word, a probability, a
        weight and the low part of an offset, and the number of high parts; then where
        these begin, and the values of the codes of probabilities and weights (0: there
        are none).
    is_trie : bool
        Whether it is a trie.

    Notes
    -----
    No twin: it is tested against KenLM.
    """

    cdef const unsigned char[::1] memory
    cdef object places
    cdef const unsigned char* data
    cdef const unsigned char* unigrams
    cdef bint is_trie
    cdef Level level[MAX_WORDS]
    cdef Buckets words
    cdef readonly int n_types, begin, end
    cdef readonly int boundary  # -1 if the file lacks a mark

    def __cinit__(
        self, const unsigned char[::1] memory not None, words, Py_ssize_t unigrams,
        list levels not None, bint is_trie,
    ):
        cdef Level* own
        cdef int k, i, n_words
        cdef float[::1] prob
        cdef float[::1] bow
        self.memory, self.data = memory, &memory[0]
        self.places = words, unigrams, levels, is_trie
        self.is_trie, self.n_context = is_trie, len(levels)
        self.words = table_at(self.data, words[0], words[1], 8 if is_trie else ENTRY)
        self.n_types = words[2]
        self.unigrams = self.data + unigrams
        for k in range(self.n_context):
            own, sizes = &self.level[k], levels[k]
            if not is_trie:
                own.table = table_at(
                    self.data, sizes[0], sizes[1],
                    MIDDLE_ENTRY if k + 1 < self.n_context else ENTRY,
                )
                continue
            own.n, own.word, own.prob, own.bow, own.low, own.n_high = sizes[1]
            own.width = own.word + own.prob + own.bow + own.low
            own.records = at_byte(self.data, sizes[0])
            own.high_starts = at_byte(self.data, sizes[2])
            own.probs = at_byte(self.data, sizes[3])
            own.bows = at_byte(self.data, sizes[4])
        self.begin, self.end = self.type_of(b"<s>"), self.type_of(b"</s>")
        self.boundary = -1
        if self.begin and self.end:
            self.boundary = self.end - (self.end > self.begin)
        # Without a mark no id is left out.
        n_words = self.n_types - (self.boundary >= 0)
        self.prob = prob = np.empty(n_words, dtype=np.float32)
        self.bow = bow = np.empty(n_words, dtype=np.float32)
        for i in range(n_words):
            prob[i] = float_of(read32(self.unigram(self.newest(i))))
            bow[i] = float_of(read32(self.unigram(self.older(i)) + 4))

    def __reduce__(self):
        return KenlmNgrams, (np.asarray(self.memory), *self.places)

    @property
    def unigram_prob(self):
        """log10 of the probability of each word as a unigram."""
        return -np.abs(self.prob)

    @property
    def unigram_bow(self):
        """log10 of the weight of each word as a context."""
        return np.asarray(self.bow)

    cdef inline const unsigned char* unigram(self, int kind) noexcept nogil:
        return self.unigrams + <int64_t> kind * (UNIGRAM if self.is_trie else 8)

    cdef inline int newest(self, int word) noexcept nogil:
        """Return KenLM's id of a word that comes next."""
        return word + (self.boundary >= 0 and word >= self.begin)

    cdef inline int older(self, int word) noexcept nogil:
        """Return KenLM's id of a word of a context."""
        return self.begin if word == self.boundary else self.newest(word)

    cdef int type_of(self, bytes word):
        return self.type_of_hash(murmur_hash(word, len(word)))

    cdef int type_of_hash(self, uint64_t h) noexcept nogil:
        """Return KenLM's id of a word; 0 if it is unknown."""
        cdef const unsigned char* found
        cdef int64_t first = -1, after = <int64_t> self.words.n, at
        cdef uint64_t below = 0, above = <uint64_t> -1, own
        cdef double part
        if not self.is_trie:
            found = find_key(&self.words, h, place_of(&self.words, h))
            at = 0 if found == NULL else read32(found)
            return <int> at if at < self.n_types else 0
        while after - first > 1:
            part = <double> (h - below) / (<double> (above - below) + 1)
            at = first + 1 + min(<int64_t> (part * (after - first - 1)),
                                 after - first - 2)
            own = read64(self.words.base + 8 * at)
            if own == h:
                return <int> at + 1
            if own < h:
                first, below = at, own
            else:
                after, above = at, own
            if not below <= h <= above:  # hashes of a damaged file
                return 0
        return 0

    cdef int find_word(self, const unsigned char* text, Py_ssize_t n) noexcept nogil:
        """Return the id of a word, or -1."""
        cdef int kind = self.type_of_hash(murmur_hash(text, n))
        if kind == 0 or (self.boundary >= 0 and kind == self.begin):
            return -1
        return kind - (self.boundary >= 0 and kind > self.begin)

    # -- look-ups --------------------------------------------------------------

    cdef void find(self, const Search* search, Chains* chains) noexcept nogil:
        """Find the longest n-gram that each word ends, all together."""
        cdef int j
        for j in range(search.n):
            chains.prob[j] = self.prob[search.words[j]]
            chains.bow[j][0] = self.bow[search.words[j]]
            chains.known[j] = 0
            chains.n_found[j] = bits_of(chains.bow[j][0]) != NO_EXTENSION
        if self.is_trie:
            self.find_sorted(search, chains)
        else:
            self.find_hashed(search, chains)

    cdef void find_hashed(self, const Search* search, Chains* chains) noexcept nogil:
        cdef uint64_t keys[CHUNK + 1]
        cdef uint64_t places[CHUNK + 1]
        cdef int live[CHUNK + 1]
        cdef int n_live = 0, n_next, i, j, k
        cdef const unsigned char* found
        cdef const Buckets* table = &self.level[0].table
        for j in range(search.n):
            keys[j] = self.newest(search.words[j])
            # The sign says that no longer n-gram ends so.
            if continues(search, j, 1) and not bits_of(chains.prob[j]) & SIGN:
                live[n_live] = j
                n_live += 1
            chains.prob[j] = float_of(bits_of(chains.prob[j]) | SIGN)
        for k in range(1, self.n_context + 1):
            table = &self.level[k - 1].table
            for i in range(n_live):
                j = live[i]
                keys[j] = longer_key(keys[j], self.older(search.older[j][-k]))
                places[j] = place_of(table, keys[j])
                NPLM_PREFETCH(table.base + places[j] * table.size)
            n_next = 0
            for i in range(n_live):
                j = live[i]
                found = find_key(table, keys[j], places[j])
                if found == NULL:
                    continue
                chains.prob[j] = float_of(read32(found) | SIGN)
                chains.known[j] = k
                if k == self.n_context:
                    continue
                put_bow(chains, j, k, float_of(read32(found + 4)))
                if not read32(found) & SIGN and continues(search, j, k + 1):
                    live[n_next] = j
                    n_next += 1
            n_live = n_next

    cdef void find_sorted(self, const Search* search, Chains* chains) noexcept nogil:
        cdef int64_t first[CHUNK + 1]
        cdef int64_t after[CHUNK + 1]
        cdef int live[CHUNK + 1]
        cdef int n_live = 0, n_next, i, j, k
        cdef int64_t at
        cdef const Level* level = &self.level[0]
        cdef const unsigned char* own
        for j in range(search.n):
            own = self.unigram(self.newest(search.words[j]))
            first[j] = <int64_t> read64(own + 8)
            after[j] = <int64_t> read64(own + 8 + UNIGRAM)
            live[n_live] = j
            n_live += 0 <= first[j] < after[j] <= level.n and continues(search, j, 1)
        for k in range(1, self.n_context + 1):
            level = &self.level[k - 1]
            self.search_all(search, k, level, live, n_live, first, after)
            n_next = 0
            for i in range(n_live):
                j = live[i]
                at = first[j]
                if at < 0:
                    continue
                chains.prob[j], chains.known[j] = prob_at(level, at), k
                if k == self.n_context:
                    continue
                put_bow(chains, j, k, bow_at(level, at))
                extensions(level, at, &first[j], &after[j])
                # Offsets of a damaged file may be outside the next level.
                if 0 <= first[j] < after[j] <= self.level[k].n and continues(
                    search, j, k + 1
                ):
                    live[n_next] = j
                    n_next += 1
            n_live = n_next

    cdef void search_all(
        self, const Search* search, int k, const Level* level, const int* live,
        int n_live, int64_t* first, int64_t* after,
    ) noexcept nogil:
        """Search the ranges of all live words in turn; `first` is the record, or -1.

        Ids are hashes in order, so the word's place among them says where to look.
        """
        cdef int64_t below[CHUNK + 1]
        cdef int64_t above[CHUNK + 1]
        cdef int64_t at[CHUNK + 1]
        cdef int wanted[CHUNK + 1]
        cdef int many[CHUNK + 1]
        cdef int n_many = n_live, n_next, i, j
        cdef int64_t word, n
        for i in range(n_live):
            j = many[i] = live[i]
            wanted[j] = self.older(search.older[j][-k])
            if not 0 <= wanted[j] < self.n_types:  # of a state of another model
                wanted[j] = self.n_types
            below[j], above[j] = 0, self.n_types
            first[j] -= 1
        while n_many > 0:
            for i in range(n_many):
                j = many[i]
                n = after[j] - first[j] - 1
                at[j] = first[j] + 1 + (
                    (wanted[j] - below[j]) * n // (above[j] - below[j] + 1)
                )
                NPLM_PREFETCH(level.records + (at[j] * level.width >> 3))
            n_next = 0
            for i in range(n_many):
                j = many[i]
                word = <int64_t> read_bits(
                    level.records, at[j] * level.width, level.word
                )
                if word == wanted[j]:
                    first[j] = at[j]
                    continue
                if word < wanted[j]:
                    first[j], below[j] = at[j], word
                else:
                    after[j], above[j] = at[j], word
                # Words of a damaged file may be in no order.
                if after[j] - first[j] > 1 and below[j] <= wanted[j] <= above[j]:
                    many[n_next] = j
                    n_next += 1
                else:
                    first[j] = -1
            n_many = n_next

    cdef bint look_up(
        self, const int* X, Py_ssize_t stride, const int* y, Py_ssize_t n_windows,
        double* out, int* orders,
    ) noexcept nogil:
        cdef int words[CHUNK * (MAX_WORDS + 1)]
        cdef Search contexts
        cdef Search search
        cdef Chains of_contexts
        cdef Chains chains
        cdef int width = self.n_context, n, j, k
        cdef int valid = True
        cdef int* row
        cdef Py_ssize_t done = 0
        while done < n_windows:
            n = <int> min(<Py_ssize_t> CHUNK, n_windows - done)
            contexts.n = search.n = n
            for j in range(n):
                row = &words[j * (width + 1)]
                for k in range(width):
                    row[k] = checked_id(
                        &X[(done + j) * stride + k], <int> self.prob.shape[0], &valid
                    )
                row[width] = checked_id(&y[done + j], <int> self.prob.shape[0], &valid)
                contexts.words[j], search.words[j] = row[width - 1], row[width]
                contexts.older[j], search.older[j] = row + width - 1, row + width
                contexts.n_older[j] = width - 1
                # Nothing before the boundary matters.
                for k in range(1, width):
                    if row[width - k] == self.boundary:
                        contexts.n_older[j] = k - 1
                        break
                contexts.limit[j] = &contexts.n_older[j]
                search.n_older[j] = contexts.n_older[j] + 1
                search.limit[j] = &of_contexts.n_found[j]
            self.find_contexts(&contexts, &of_contexts)
            self.find(&search, &chains)
            for j in range(n):
                out[done + j] = pow(10, log10_of(
                    &chains, j, of_contexts.bow[j], of_contexts.n_found[j]
                ))
                if orders != NULL:
                    orders[done + j] = chains.known[j] + 1
            done += n
        return valid

    cdef void find_contexts(self, const Search* search, Chains* chains) noexcept nogil:
        """Find the longest context that each word ends."""
        cdef int j
        self.find(search, chains)
        for j in range(search.n):
            if search.words[j] == self.boundary:
                chains.n_found[j] = 1

    # -- lists of n-grams ------------------------------------------------------

    def fill_records(
        self, int i, int64_t first, int[::1] words, float[::1] prob, float[::1] bow
    ):
        """Fill in KenLM's ids of the oldest words of n-grams of a trie, and log10.

        Equivalent to ``words[:] = level[i].words[first:first + len(words)]`` and so on.

        No twin: see the class.
        """
        cdef const Level* level = &self.level[i]
        cdef int64_t j
        if not 0 <= first <= first + words.shape[0] <= level.n:
            raise ValueError("there are fewer n-grams")
        for j in range(words.shape[0]):
            words[j] = <int> read_bits(
                level.records, (first + j) * level.width, level.word
            )
            prob[j] = prob_at(level, first + j)
            bow[j] = bow_at(level, first + j) if i + 1 < self.n_context else 0

    def fill_starts(self, int i, int64_t first, int64_t[::1] starts):
        """Fill in the first extensions of n-grams of a trie; level -1 has unigrams.

        Equivalent to ``starts[:] = level[i].starts[first:first + len(starts)]``.

        No twin: see the class.
        """
        cdef int64_t j, after, n = self.n_types if i < 0 else self.level[i].n
        if not 0 <= first <= first + starts.shape[0] <= n + 1:
            raise ValueError("there are fewer n-grams")
        for j in range(starts.shape[0]):
            if i < 0:
                starts[j] = <int64_t> read64(self.unigram(0) + (first + j) * UNIGRAM + 8)
            elif first + j < n:
                extensions(&self.level[i], first + j, &starts[j], &after)
            else:
                extensions(&self.level[i], n - 1, &after, &starts[j])


cdef inline bint continues(const Search* search, int j, int k) noexcept nogil:
    """Whether `k` words before word j can matter."""
    return k <= search.n_older[j] and k <= search.limit[j][0]


cdef inline void put_bow(Chains* chains, int j, int k, float bow) noexcept nogil:
    """Store the weight of a context of k + 1 words.

    As KenLM's states do, the context is as long as an n-gram may begin with it.
    """
    chains.bow[j][k] = bow
    if bits_of(bow) != NO_EXTENSION:
        chains.n_found[j] = k + 1


cdef class KenlmIds(Ids):
    """Ids of words by the hashes of a file, which may lack their letters.

    Parameters
    ----------
    ngrams : KenlmNgrams

    Notes
    -----
    No twin: it is tested against KenLM.
    """

    cdef KenlmNgrams ngrams

    def __init__(self, KenlmNgrams ngrams not None):
        self.ngrams = ngrams

    def __reduce__(self):
        return KenlmIds, (self.ngrams,)

    cdef bint find_word(self, object word, int* id) except -1:
        cdef const unsigned char* text
        cdef Py_ssize_t n
        if not isinstance(word, str):
            hash(word)
            return False
        if word == "<unk>":  # which has no hash
            id[0] = 0
            return True
        try:
            text = <const unsigned char*> PyUnicode_AsUTF8AndSize(word, &n)
        except UnicodeEncodeError:  # lone surrogates, which no word has
            return False
        id[0] = self.ngrams.find_word(text, n)
        return id[0] >= 0


cdef class KenlmWordScorer(WordScorer):
    """Word-by-word scorer of a file of KenLM; see `WordScorer`.

    No twin: see `WordScorer`.
    """

    cdef KenlmNgrams ngrams  # owns the memory of the pointers

    def __cinit__(
        self, KenlmNgrams ngrams, int boundary, ids, int n_words, int unknown,
        bint closed,
    ):
        if boundary != ngrams.boundary or n_words != ngrams.prob.shape[0]:
            raise ValueError(f"boundary={boundary}, n_words={n_words} are not the file's")
        self.ngrams = ngrams
        self.prob, self.bow = &ngrams.prob[0], &ngrams.bow[0]
        self.in_log10 = True
        self.find_start()

    cdef void find_start(self) noexcept:
        # <s> alone, which has a weight even if no n-gram begins with it.
        self.start.n_words = self.start.n_found = 1
        self.start.words[0] = self.boundary
        self.start.hashes[0] = hash_word(self.boundary)
        self.start.bow[0] = self.bow[self.boundary]

    cdef void look_up(
        self, const Context* context, const int* ids, int n, bint follow,
        Chains* chains,
    ) noexcept nogil:
        cdef int words[MAX_WORDS + CHUNK + 1]
        cdef Search search
        cdef int n_before = context.n_words, j, k, before
        for k in range(n_before):
            words[n_before - 1 - k] = context.words[k]
            chains.hashes[n_before - 1 - k] = context.hashes[k]
        search.n = n
        for j in range(n):
            words[n_before + j] = ids[j]
            chains.hashes[n_before + j] = hash_word(ids[j])
            before = n_before + (j if follow else 0)
            search.words[j], search.older[j] = ids[j], &words[before]
            search.n_older[j] = min(before, self.n_context)
            search.limit[j] = (
                &chains.n_found[j - 1] if follow and j > 0 else &context.n_found
            )
        self.ngrams.find(&search, chains)

    cdef void prefetch(self, const Context* context, int id) noexcept nogil:
        cdef uint64_t key = self.ngrams.newest(id)
        cdef const Buckets* table
        cdef int k
        NPLM_PREFETCH(self.prob + id)
        NPLM_PREFETCH(self.bow + id)
        if self.ngrams.is_trie:
            NPLM_PREFETCH(self.ngrams.unigram(<int> key))
            return
        for k in range(min(context.n_found, self.n_context)):
            table = &self.ngrams.level[k].table
            key = longer_key(key, self.ngrams.older(context.words[k]))
            NPLM_PREFETCH(table.base + place_of(table, key) * table.size)

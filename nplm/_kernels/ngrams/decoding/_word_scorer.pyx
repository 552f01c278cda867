"""Score sentences with a back-off model word by word, for decoders and loops.

A sentence of 20 words is scored in less time than NumPy needs to make one array, so
this kernel takes words and returns numbers. It is the only kernel that handles Python
strings, and their ids. Its look-ups are those of ``hashed_prob``, one
word after another.
"""

from libc.math cimport INFINITY, log
from libc.stdint cimport int64_t, uint64_t

from nplm._kernels._ids cimport id_below
from nplm._kernels.ngrams._bits cimport NPLM_PREFETCH
from nplm._kernels.ngrams._chains cimport MAX_WORDS
from nplm._kernels.ngrams._hashed cimport (
    MULTIPLIER, NPLM_NOTHING, Bucket, Table, filter_bit, find_bucket,
    find_long, hash_word, home,
)
from nplm._kernels.ngrams.decoding._kenlm cimport Steps
from nplm._kernels.ngrams.decoding._word_ids cimport (
    Ids, Word, WordIds, encodable, ids_of, next_word, utf8_of,
)
from nplm._kernels.ngrams._quantized cimport (
    Level, QuantizedTrie, bow_at, children, find_record, prob_at, word_at,
)

cdef enum:
    # Words looked up together.
    CHUNK = 32
    # Ranges of this many records, about two cache lines, are searched one by one.
    FEW = 16


cdef struct Context:
    # The preceding words that an n-gram can contain, newest first.
    int n_words
    int words[MAX_WORDS]
    uint64_t hashes[MAX_WORDS]
    # The length of the longest of their contexts in the table; bow[k] is the weight of
    # the context of k + 1 words.
    int n_found
    float bow[MAX_WORDS]


cdef struct Chains:
    # For each word: the number of context words and the probability of the longest
    # n-gram that it ends, and the weights of the contexts that it ends, as in
    # `Context`.
    int known[CHUNK + 1]
    float prob[CHUNK + 1]
    int n_found[CHUNK + 1]
    float bow[CHUNK + 1][MAX_WORDS]
    # Hashes of the preceding words, oldest first, and of the words.
    uint64_t hashes[MAX_WORDS + CHUNK + 1]


cdef class State:
    """State of a `WordScorer`: the preceding words.

    Equal states give the same probabilities to all following words.

    No twin: holds the words that ``backoff_prob`` takes as a row of X.
    """

    cdef Context context
    cdef int n_telling  # the newest words, on which later probabilities depend

    @property
    def words(self):
        """Ids of the words on which later probabilities depend, the newest last."""
        cdef int k
        return tuple(
            [self.context.words[k] for k in range(self.n_telling - 1, -1, -1)]
        )

    def __eq__(self, other):
        cdef State state
        cdef int k
        if not isinstance(other, State):
            return NotImplemented
        state = other
        if state.n_telling != self.n_telling:
            return False
        for k in range(self.n_telling):
            if state.context.words[k] != self.context.words[k]:
                return False
        return True

    def __hash__(self):
        cdef uint64_t key = self.n_telling
        cdef int k
        for k in range(self.n_telling):
            key = key * MULTIPLIER + self.context.hashes[k]
        return <Py_ssize_t> (key >> 2)

    def __repr__(self):
        return f"State{self.words}"

    def __reduce__(self):
        cdef int k
        words = tuple([self.context.words[k] for k in range(self.context.n_words)])
        weights = tuple([self.context.bow[k] for k in range(self.context.n_found)])
        return restored_state, (words, weights, self.n_telling)


def restored_state(words, weights, int n_telling):
    """Make a `State` of what it pickles as: its words, newest first, and weights.

    No twin: see `State`.
    """
    cdef State state = State.__new__(State)
    cdef Context* context = &state.context
    cdef int k
    context.n_words, context.n_found = len(words), len(weights)
    state.n_telling = n_telling
    if not 0 <= n_telling <= len(words) <= MAX_WORDS or len(weights) > len(words):
        raise ValueError(f"{words} and {weights} are not those of a state")
    for k in range(context.n_words):
        context.words[k], context.hashes[k] = words[k], hash_word(words[k])
    for k in range(context.n_found):
        context.bow[k] = weights[k]
    return state


cdef class WordScorer(Steps):
    """Word-by-word scorer of a back-off model and its vocabulary.

    A subclass looks n-grams up in `ngrams`.

    Parameters
    ----------
    ngrams : Table or QuantizedTrie
        The n-grams.
    boundary : int
        Id of the sentence boundary: words before it have no influence.
    ids : dict of word to int, Ids, or None
        The id of each word, or None if words are given as ids.
    n_words : int
        Size of the vocabulary.
    unknown : int
        The id of words that are not in `ids`; -1 refuses them.
    closed : bool
        Whether each context is also an n-gram after a context. If so, later
        probabilities depend only on the longest context found.

    Notes
    -----
    Equivalent to ``np.log(backoff_prob(...))`` of the windows of a sentence.

    No twin: it is tested against ``backoff_prob``, which has one.
    """

    cdef int n_context, boundary, n_words, unknown
    cdef Ids ids
    cdef bint closed
    cdef Context start

    def __cinit__(
        self, ngrams, int boundary, ids, int n_words, int unknown, bint closed
    ):
        if not (0 <= boundary < n_words > unknown >= -1):
            raise ValueError(
                f"boundary={boundary} and unknown={unknown} are not ids of {n_words} "
                "words"
            )
        self.n_context, self.boundary = ngrams.n_context, boundary
        self.ids, self.n_words, self.unknown = ids_of(ids), n_words, unknown
        self.closed = closed

    cdef void find_start(self) noexcept:
        """Make the context at the beginning of a sentence, filled with boundaries."""
        cdef Context* context = &self.start
        cdef Chains chains
        cdef int k
        context.n_words = self.n_context
        for k in range(self.n_context):
            context.words[k] = self.boundary
            context.hashes[k] = hash_word(self.boundary)
        self.look_up(context, &self.boundary, 1, True, &chains)
        context.n_found = chains.n_found[0]
        for k in range(context.n_found):
            context.bow[k] = chains.bow[0][k]

    cdef void look_up(
        self, const Context* context, const int* ids, int n, bint follow,
        Chains* chains,
    ) noexcept nogil:
        """Find the longest n-gram and context that each word ends.

        If `follow`, each word follows the previous one; otherwise each follows the
        context.
        """

    def begin(self, bint bos=True):
        """Return the state before the first word, after a boundary if `bos`."""
        cdef State state = State.__new__(State)
        if bos:
            state.context = self.start
        return self.telling(state)

    def step(self, State state not None, word):
        """Return the log-probability of a word, and the state after it."""
        cdef State after = State.__new__(State)
        cdef int i = self.id_of(word)
        cdef double log_prob
        after.context = state.context
        log_prob = self.score_words(&after.context, &i, 1, 0, NULL, NULL)
        return log_prob, self.telling(after)

    def end(self, State state not None):
        """Return the log-probability of the boundary after a state."""
        cdef Context context = state.context
        return self.score_words(&context, &self.boundary, 1, 0, NULL, NULL)

    def fill_steps(self, states, words, double[::1] out):
        """Fill `out` with the results of `step` for pairs; return the states after."""
        cdef list after = []
        cdef Py_ssize_t row
        for row in range(out.shape[0]):
            out[row], state = self.step(states[row], words[row])
            after.append(state)
        return after

    def full_step(self, State state not None, word):
        """Return the log-probability of a word, its order, and the state after it.

        The order is the length of the n-gram found. None is the boundary.
        """
        cdef double log_prob
        cdef int order
        after = self.step_to(state, word, &log_prob, &order)
        return log_prob, order, after

    cdef object step_to(self, object own, object word, double* log_prob, int* order):
        cdef State state = own
        cdef State after = State.__new__(State)
        cdef int i = self.boundary if word is None else self.id_of(word)
        after.context = state.context
        self.score_words(&after.context, &i, 1, 0, log_prob, order)
        return self.telling(after)

    def full_scores(self, words, double base, double zero, bint bos=True, bint eos=True):
        """Return the tuples of a sentence that KenLM calls full scores.

        Each has a logarithm to the base (`zero` for probability 0), the order, and
        whether the word is unknown.
        """
        cdef Context context
        cdef int ids[CHUNK]
        cdef list scores = []
        cdef double scale = 1 / log(base)
        cdef int n = 0
        self.begin_in(&context, bos)
        for word in [*words, None] if eos else words:
            ids[n] = self.boundary if word is None else self.id_of(word)
            n += 1
            # No context reaches back over a boundary.
            if n == CHUNK or ids[n - 1] == self.boundary:
                self.score_in_full(&context, ids, n, scores, scale, zero)
                n = 0
        self.score_in_full(&context, ids, n, scores, scale, zero)
        return scores

    cdef int score_in_full(
        self, Context* context, const int* ids, int n, list scores, double scale,
        double zero,
    ) except -1:
        """Append the scores of words to those of `full_scores`."""
        cdef double log_prob[CHUNK]
        cdef int orders[CHUNK]
        cdef int j
        self.score_words(context, ids, n, 0, log_prob, orders)
        for j in range(n):
            scores.append((
                zero if log_prob[j] == -INFINITY else log_prob[j] * scale,
                orders[j], ids[j] == self.unknown,
            ))
        return 0

    def fill_candidates(self, State state not None, words, double[::1] out):
        """Fill `out` with the log-probabilities of candidates for the next word."""
        cdef Context* context = &state.context
        cdef int ids[CHUNK]
        cdef Chains chains
        cdef Py_ssize_t filled = 0
        cdef int n = 0, j
        for word in words:
            ids[n] = self.id_of(word)
            n += 1
            if n == CHUNK or filled + n == out.shape[0]:
                self.look_up(context, ids, n, False, &chains)
                for j in range(n):
                    out[filled + j] = log_of(
                        &chains, j, context.bow, context.n_found
                    )
                filled += n
                n = 0

    def sentence(self, words, bint bos=True, bint eos=True):
        """Return the log-probability of a sentence, with its boundary if `eos`."""
        cdef Context context
        cdef int ids[CHUNK + 1]
        cdef int n = 0
        cdef double total = 0
        self.begin_in(&context, bos)
        for word in words:
            ids[n] = self.id_of(word)
            n += 1
            # No context reaches back over a boundary.
            if n == CHUNK or ids[n - 1] == self.boundary:
                total = self.score_words(&context, ids, n, total, NULL, NULL)
                n = 0
        if eos:
            ids[n] = self.boundary
            n += 1
        return self.score_words(&context, ids, n, total, NULL, NULL)

    def text(self, WordIds words not None, text, bint bos, bint eos):
        """Return the log-probability of a sentence of words between blanks.

        Equivalent to ``sentence(BETWEEN_BLANKS.findall(text), bos, eos)``, where `words`
        are those of the vocabulary and `text` is a string.
        """
        cdef Context context
        cdef int ids[CHUNK + 1]
        cdef int n = 0
        cdef Py_ssize_t size
        cdef const unsigned char* data
        cdef double total = 0
        cdef Word word
        text = encodable(text)
        data = utf8_of(text, &size)
        word.end = 0
        self.begin_in(&context, bos)
        while next_word(data, size, &word):
            ids[n] = words.find(data + word.begin, word.end - word.begin, word.hashed)
            if ids[n] < 0 and self.unknown >= 0:
                ids[n] = self.unknown
            elif not 0 <= ids[n] < self.n_words:
                ids[n] = self.id_of(
                    data[word.begin:word.end].decode("utf-8", "surrogatepass")
                )
            n += 1
            # No context reaches back over a boundary.
            if n == CHUNK or ids[n - 1] == self.boundary:
                total = self.score_words(&context, ids, n, total, NULL, NULL)
                n = 0
        if eos:
            ids[n] = self.boundary
            n += 1
        return self.score_words(&context, ids, n, total, NULL, NULL)

    def fill_tokens(
        self, const int[::1] ids, const int64_t[::1] lengths, bint bos, bint eos,
        double[::1] log_prob, int[::1] orders,
    ):
        """Fill in the log-probability of each token, and the order of its n-gram.

        `ids` has the words of the sentences, concatenated, and `lengths` the number of
        words of each. With `eos`, each sentence has one more token.
        """
        cdef Context context
        cdef Py_ssize_t i = 0, out = 0, last, row
        cdef int own[CHUNK]
        cdef int n
        if log_prob.shape[0] == 0:
            return
        with nogil:
            for row in range(lengths.shape[0]):
                self.begin_in(&context, bos)
                last = i + lengths[row]
                while i < last:
                    n = 0
                    while n < CHUNK and i + n < last:
                        own[n] = id_below(&ids[i + n], self.n_words)
                        n += 1
                        if own[n - 1] == self.boundary:
                            break
                    self.score_words(&context, own, n, 0, &log_prob[out], &orders[out])
                    i += n
                    out += n
                if eos:
                    self.score_words(
                        &context, &self.boundary, 1, 0, &log_prob[out], &orders[out]
                    )
                    out += 1

    cdef inline void begin_in(self, Context* context, bint bos) noexcept nogil:
        if bos:
            context[0] = self.start
        else:
            context.n_words = context.n_found = 0

    cdef double score_words(
        self, Context* context, const int* ids, int n, double total,
        double* log_prob, int* orders,
    ) noexcept nogil:
        """Return `total` plus the log-probabilities of words, and store each of them.

        Only the last word may be a boundary. Updates `context` to that of the next
        word.
        """
        cdef Chains chains
        cdef double own
        cdef int j
        if n == 0:
            return total
        self.look_up(context, ids, n, True, &chains)
        for j in range(n):
            if j == 0:
                own = log_of(&chains, 0, context.bow, context.n_found)
            else:
                own = log_of(&chains, j, chains.bow[j - 1], chains.n_found[j - 1])
            total += own
            if log_prob != NULL:
                log_prob[j], orders[j] = own, chains.known[j] + 1
        if ids[n - 1] == self.boundary:
            context[0] = self.start
        else:
            go_on(context, ids, n, self.n_context, &chains)
        return total

    cdef inline State telling(self, State state):
        cdef Context* context = &state.context
        state.n_telling = context.n_found if self.closed else context.n_words
        return state

    cdef inline int id_of(self, word) except -1:
        cdef int i
        if self.ids is None:
            i = word
            if not 0 <= i < self.n_words:
                raise ValueError(
                    f"{word} is no word id: ids are from 0 to {self.n_words - 1}."
                )
            return i
        if self.ids.find_word(word, &i):
            if i >= self.n_words:
                raise ValueError(
                    f"{word!r} has the id {i}, but the model knows {self.n_words} "
                    "words: the vocabulary is not the one that it was fitted with."
                )
            return i
        if word is None or word != word:
            raise TypeError(
                f"a token is missing ({word!r}): leave it out, or put a word in its "
                "place."
            )
        if self.unknown < 0:
            raise ValueError(
                f"{word!r} is not among the {self.n_words} words of the vocabulary, "
                "which has no symbol for unknown ones."
            )
        return self.unknown


cdef class HashedWordScorer(WordScorer):
    """Word-by-word scorer of a hash table of n-grams; see `WordScorer`.

    No twin: see `WordScorer`.
    """

    cdef Table table  # owns the memory of the pointers
    cdef Bucket* buckets
    cdef const int64_t* bucket_start
    cdef const float* prob
    cdef const float* bow

    def __cinit__(
        self, Table table, int boundary, ids, int n_words, int unknown,
        bint closed,
    ):
        check_n_words(n_words, table.prob.shape[0])
        self.table = table
        self.buckets, self.bucket_start = table.buckets, &table.bucket_start[0]
        self.prob, self.bow = &table.prob[0], &table.bow[0]
        self.find_start()

    cdef void look_up(
        self, const Context* context, const int* ids, int n, bint follow,
        Chains* chains,
    ) noexcept nogil:
        # In common steps: the memory of a step is prefetched for all words.
        cdef uint64_t keys[CHUNK + 1]
        cdef int live[CHUNK + 1]
        cdef int n_before = context.n_words
        cdef int n_live = n, n_next, i, j, k, before
        cdef uint64_t power = MULTIPLIER, n_buckets
        cdef Bucket* buckets
        cdef const Bucket* at
        cdef int slot
        cdef float prob
        for k in range(n_before):
            chains.hashes[n_before - 1 - k] = context.hashes[k]
        for j in range(n):
            keys[j] = chains.hashes[n_before + j] = hash_word(ids[j])
            chains.prob[j], chains.bow[j][0] = self.prob[ids[j]], self.bow[ids[j]]
            chains.known[j], chains.n_found[j] = 0, 1
            live[j] = j
        if n == 1:
            self.prefetch(chains.hashes, n_before)
        for k in range(1, self.n_context + 1):
            buckets = self.buckets + self.bucket_start[k]
            n_buckets = self.bucket_start[k + 1] - self.bucket_start[k]
            n_next = 0
            for i in range(n_live):
                j = live[i]
                before = n_before + (j if follow else 0)
                if before < k:
                    continue
                keys[j] += chains.hashes[before - k] * power
                NPLM_PREFETCH(home(buckets, n_buckets, keys[j]))
                live[n_next] = j
                n_next += 1
            n_live, n_next = n_next, 0
            for i in range(n_live if k == self.n_context else 0):
                j = live[i]
                prob = find_long(buckets, n_buckets, keys[j])
                if prob >= 0:
                    chains.prob[j], chains.known[j] = prob, k
            for i in range(n_live if k < self.n_context else 0):
                j = live[i]
                at = find_bucket(buckets, n_buckets, keys[j], &slot)
                if at == NPLM_NOTHING:
                    continue
                if at.prob[slot] >= 0:
                    chains.prob[j], chains.known[j] = at.prob[slot], k
                chains.bow[j][k] = at.bow[slot]
                chains.n_found[j] = k + 1
                before = n_before + (j if follow else 0)
                if before > k and at.low[slot] & filter_bit(chains.hashes[before - k - 1]):
                    live[n_next] = j
                    n_next += 1
            n_live = n_next
            power *= MULTIPLIER

    cdef void prefetch(self, const uint64_t* hashes, int n_before) noexcept nogil:
        """Prefetch the buckets of all steps of one word, the last of `hashes`."""
        cdef uint64_t key = hashes[n_before], power = MULTIPLIER
        cdef int k
        for k in range(1, min(n_before, self.n_context) + 1):
            key += hashes[n_before - k] * power
            power *= MULTIPLIER
            NPLM_PREFETCH(home(
                self.buckets + self.bucket_start[k],
                self.bucket_start[k + 1] - self.bucket_start[k], key,
            ))


cdef class QuantizedWordScorer(WordScorer):
    """Word-by-word scorer of a quantized trie; see `WordScorer`.

    No twin: see `WordScorer`.
    """

    cdef QuantizedTrie trie  # owns the memory of the pointers
    cdef const float* prob
    cdef const float* bow
    cdef const int64_t* bigrams

    def __cinit__(
        self, QuantizedTrie trie, int boundary, ids, int n_words, int unknown,
        bint closed,
    ):
        check_n_words(n_words, trie.prob.shape[0])
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
                live[n_next] = j
                # Offsets of a damaged file may be outside the records of the level.
                n_next += (
                    before >= k and length[j] > 0 and first[j] + length[j] <= level.n
                )
            n_live, n_next = n_next, 0
            if n_live > 1:
                self.narrow(level, words, n_before - k, follow, live, n_live, first,
                            length)
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


cdef inline int64_t length_of(int64_t first, int64_t last) noexcept nogil:
    """Return the length of a range; 0 if it is none, as it may be in a damaged file."""
    # A difference of other numbers may overflow.
    return last - first if 0 <= first < last else 0


cdef int check_n_words(int n_words, Py_ssize_t n_known) except -1:
    if n_words > n_known:
        raise ValueError(f"n_words={n_words}, but the n-grams have {n_known} words")
    return 0


cdef inline double log_of(
    const Chains* chains, int j, const float* bow, int n_found
) noexcept nogil:
    """Return the log-probability of word j, given the weights of its contexts.

    The weights of contexts longer than that of its n-gram multiply, longest first.
    """
    cdef double scale = 1
    cdef int k
    for k in range(n_found - 1, chains.known[j] - 1, -1):
        scale *= bow[k]
    return log(scale * chains.prob[j])


cdef inline void go_on(
    Context* context, const int* ids, int n, int n_context, const Chains* chains
) noexcept nogil:
    """Update the context to that of the next word."""
    cdef int n_before = context.n_words
    cdef int k
    context.n_words = min(n_before + n, n_context)
    for k in range(context.n_words - 1, -1, -1):
        if k < n:
            context.words[k] = ids[n - 1 - k]
            context.hashes[k] = chains.hashes[n_before + n - 1 - k]
        else:
            context.words[k] = context.words[k - n]
            context.hashes[k] = context.hashes[k - n]
    context.n_found = chains.n_found[n - 1]
    for k in range(context.n_found):
        context.bow[k] = chains.bow[n - 1][k]

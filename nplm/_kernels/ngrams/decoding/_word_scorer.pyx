"""Score sentences with a back-off model word by word, for decoders and loops.

A sentence of 20 words is scored in less time than NumPy needs to make one array, so
this kernel takes words and returns numbers. It is the only kernel that handles Python
strings, and their ids. The look-ups are those of ``_ngram_scorers``.
"""

cimport cython
from libc.math cimport INFINITY, log
from libc.stdint cimport int64_t, uint64_t

from nplm._kernels._ids cimport id_below
from nplm._kernels.ngrams._bits cimport NPLM_PREFETCH
from nplm._kernels.ngrams._chains cimport MAX_WORDS
from nplm._kernels.ngrams._hashed cimport MULTIPLIER, hash_word
from nplm._kernels.ngrams.decoding._kenlm cimport Steps
from nplm._kernels.ngrams.decoding._word_ids cimport (
    BATCH, Batch, Word, WordIds, encodable, expect_text, guess_id, hashed_text, ids_of, spells,
    utf8_of,
)

cdef double LN10 = log(10.0)


@cython.freelist(64)
cdef class State:
    """State of a `WordScorer`: the preceding words.

    Equal states give the same probabilities to all following words.

    No twin: holds the words that ``backoff_prob`` takes as a row of X.
    """

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
        self.words = self.ids if isinstance(self.ids, WordIds) else None
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
        # Not known yet: each context is looked up.
        context.n_found = self.n_context
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

    cdef void prefetch(self, const Context* context, int id) noexcept nogil:
        """Prefetch what the look-up of a word after a context reads."""

    def begin(self, bint bos=True):
        """Return the state before the first word, after a boundary if `bos`."""
        cdef State state = State.__new__(State)
        if bos:
            state.context = self.start
        return self.telling(state)

    # A built-in method is called in less time than a function of Python.
    @cython.binding(False)
    def step(self, State state not None, word):
        """Return the log-probability of a word, and the state after it."""
        cdef double log_prob
        cdef int order
        after = self.after_text(state, word, &log_prob, &order, False)
        return log_prob, after

    def end(self, State state not None):
        """Return the log-probability of the boundary after a state."""
        cdef Context context
        self.prefetch(&state.context, self.boundary)
        context = state.context
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

        The order is that of KenLM: see `score_words`. None is the boundary.
        """
        cdef double log_prob
        cdef int order
        after = self.step_to(state, word, &log_prob, &order)
        return log_prob, order, after

    cdef object step_to(self, object own, object word, double* log_prob, int* order):
        cdef State state = own
        if word is not None:
            return self.after_text(state, word, log_prob, order, True)
        self.prefetch(&state.context, self.boundary)
        return self.after_word(state, self.boundary, log_prob, order, True)

    cdef State after_text(
        self, State state, object word, double* log_prob, int* order, bint suffixes
    ):
        """Return the state after a word that is not an id yet, as `after_word`.

        The letters of a word that the table guesses are compared after its look-up:
        both wait for memory.
        """
        cdef const unsigned char* data = NULL
        cdef State after
        cdef Py_ssize_t n
        cdef uint64_t h
        cdef int i = -1
        if self.words is not None and isinstance(word, str):
            data = hashed_text(word, &n, &h)
        if data != NULL:
            i = guess_id(self.words, h)
            if 0 <= i < self.n_words:
                self.prefetch(&state.context, i)
                expect_text(self.words, i)
                after = self.after_word(state, i, log_prob, order, suffixes)
                if spells(self.words.text, self.words.start, i, data, n):
                    return after
            i = self.words.find(data, n, h)
        if not 0 <= i < self.n_words:
            i = self.id_of(word)
        self.prefetch(&state.context, i)
        return self.after_word(state, i, log_prob, order, suffixes)

    cdef State after_word(
        self, State state, int id, double* log_prob, int* order, bint suffixes
    ):
        """Return the state after a word; store what `score_words` does."""
        cdef State after = State.__new__(State)
        cdef Context* context = &state.context
        cdef Chains chains
        self.look_up(context, &id, 1, True, &chains)
        log_prob[0] = log_of(
            &chains, 0, context.bow, context.n_found, self.in_log10
        )
        order[0] = order_of(&chains, 0, suffixes)
        if id == self.boundary:
            after.context = self.start
        else:
            go_on(&after.context, context, &id, 1, self.n_context, &chains)
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
        self.score_words(context, ids, n, 0, log_prob, orders, True)
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
            # A list may grow or shrink while it is read.
            if filled == out.shape[0]:
                raise ValueError(f"there are more than {filled} words")
            ids[n] = self.id_of(word)
            n += 1
            if n == CHUNK or filled + n == out.shape[0]:
                self.look_up(context, ids, n, False, &chains)
                for j in range(n):
                    out[filled + j] = log_of(
                        &chains, j, context.bow, context.n_found, self.in_log10
                    )
                filled += n
                n = 0
        if filled != out.shape[0]:
            raise ValueError(f"there are fewer than {out.shape[0]} words")

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
        cdef int ids[BATCH + 1]
        cdef int n = BATCH, n_ids, first, j
        cdef Py_ssize_t size, at = 0
        cdef const unsigned char* data
        cdef double total = 0
        text = encodable(text)
        data = utf8_of(text, &size)
        self.begin_in(&context, bos)
        while n == BATCH:
            n = self.next_ids(words, data, size, &at, ids)
            first, n_ids = 0, n
            if eos and n < BATCH:
                ids[n] = self.boundary
                n_ids += 1
            for j in range(n_ids):
                # No context reaches back over a boundary.
                if ids[j] == self.boundary or j == n_ids - 1:
                    total = self.score_words(
                        &context, ids + first, j + 1 - first, total, NULL, NULL
                    )
                    first = j + 1
        return total

    cdef int next_ids(
        self, WordIds words, const unsigned char* text, Py_ssize_t n, Py_ssize_t* at,
        int* ids,
    ) except -1:
        """Read the ids of the next words of a text; return how many.

        Fewer than BATCH are the last ones.
        """
        cdef Batch batch
        cdef Word* word
        cdef int i
        words.guess(text, n, at[0], &batch)
        for i in range(batch.n):
            if 0 <= batch.guesses[i] < self.n_words:
                NPLM_PREFETCH(self.prob + batch.guesses[i])
                NPLM_PREFETCH(self.bow + batch.guesses[i])
        for i in range(batch.n):
            expect_text(words, batch.guesses[i])
        for i in range(batch.n):
            word = &batch.words[i]
            at[0] = word.end
            ids[i] = words.guessed(text, &batch, i)
            if ids[i] < 0 and self.unknown >= 0:
                ids[i] = self.unknown
            elif not 0 <= ids[i] < self.n_words:
                ids[i] = self.id_of(
                    text[word.begin:word.end].decode("utf-8", "surrogatepass")
                )
        return batch.n

    def fill_texts(
        self, WordIds words not None, list texts not None, bint bos, bint eos,
        double[::1] out,
    ):
        """Fill `out` with the log-probabilities of sentences, as `text` returns them."""
        cdef Py_ssize_t i
        if out.shape[0] != len(texts):
            raise ValueError(f"{len(texts)} texts, but room for {out.shape[0]}")
        for i in range(out.shape[0]):
            out[i] = self.text(words, texts[i], bos, eos)

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
        double* log_prob, int* orders, bint suffixes=False,
    ) noexcept nogil:
        """Return `total` plus the log-probabilities of words, and store each of them.

        The order of a word is the length of the n-gram found. With `suffixes`, as in
        KenLM, a suffix of a longer n-gram counts as found. Only the last word may be a
        boundary. Updates `context` to that of the next
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
                own = log_of(
                    &chains, 0, context.bow, context.n_found, self.in_log10
                )
            else:
                own = log_of(
                    &chains, j, chains.bow[j - 1], chains.n_found[j - 1], self.in_log10
                )
            total += own
            if log_prob != NULL:
                log_prob[j], orders[j] = own, order_of(&chains, j, suffixes)
        if ids[n - 1] == self.boundary:
            context[0] = self.start
        else:
            go_on(context, context, ids, n, self.n_context, &chains)
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
                    f"{word} is not a word id: ids are from 0 to {self.n_words - 1}."
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
                f"{word!r} is not among the {self.n_words} words of the vocabulary, and "
                'unknown words are refused: leave it out, or set handle_unknown="symbol" '
                "of a TextLM whose vocabulary has a symbol for them."
            )
        return self.unknown


cdef inline double log_of(
    const Chains* chains, int j, const float* bow, int n_found, bint in_log10
) noexcept nogil:
    """Return the log-probability of word j, given the weights of its contexts.

    The weights of contexts longer than that of its n-gram multiply, longest first.
    """
    cdef double scale = 1
    cdef int k
    if in_log10:
        return LN10 * log10_of(chains, j, bow, n_found)
    for k in range(n_found - 1, chains.known[j] - 1, -1):
        scale *= bow[k]
    return log(scale * chains.prob[j])


cdef inline int order_of(const Chains* chains, int j, bint suffixes) noexcept nogil:
    """Return the order of word j; see `WordScorer.score_words`."""
    cdef int order = chains.known[j] + 1
    return chains.n_found[j] if suffixes and chains.n_found[j] > order else order


cdef inline void go_on(
    Context* after, const Context* context, const int* ids, int n, int n_context,
    const Chains* chains,
) noexcept nogil:
    """Fill in the context after words that follow a context; it may be the same one."""
    cdef int n_before = context.n_words
    cdef int k
    after.n_words = min(n_before + n, n_context)
    for k in range(after.n_words - 1, -1, -1):
        if k < n:
            after.words[k] = ids[n - 1 - k]
            after.hashes[k] = chains.hashes[n_before + n - 1 - k]
        else:
            after.words[k] = context.words[k - n]
            after.hashes[k] = context.hashes[k - n]
    after.n_found = chains.n_found[n - 1]
    for k in range(after.n_found):
        after.bow[k] = chains.bow[n - 1][k]

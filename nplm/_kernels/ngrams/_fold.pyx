"""Build the levels of a trie from sorted n-grams of the highest order, in one pass."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc

cdef enum:
    # Fewer words are sorted by insertion.
    FEW = 24


cdef struct Numbers:
    char* at
    Py_ssize_t n_bytes
    Py_ssize_t capacity


cdef inline bint put(Numbers* numbers, const void* value, int size) noexcept nogil:
    """Append a number of 4 or 8 bytes; return False if out of memory."""
    cdef char* grown
    if numbers.n_bytes + size > numbers.capacity:
        grown = <char*> realloc(numbers.at, 2 * numbers.capacity + 4096)
        if grown == NULL:
            return False
        numbers.at = grown
        numbers.capacity = 2 * numbers.capacity + 4096
    if size == 4:
        (<int*> (numbers.at + numbers.n_bytes))[0] = (<int*> value)[0]
    else:
        (<int64_t*> (numbers.at + numbers.n_bytes))[0] = (<int64_t*> value)[0]
    numbers.n_bytes += size
    return True


cdef struct Level:
    # Arrays built but not yet taken: those of the contexts of k words...
    Numbers context_word
    Numbers child_start
    Numbers start
    # ... and those of the n-grams that follow them.
    Numbers words
    Numbers counts
    Numbers raw
    int n_contexts
    int n_ngrams
    # For the open context: the number of distinct words before each follower, its
    # count in the text if wanted, and the followers met so far.
    int* distinct
    int64_t* total
    int* met
    int n_met


cdef void sort_words(int* words, int n) noexcept nogil:
    """Sort in place by quicksort, shorter part first, and insertion sort if short."""
    cdef int i, j, low, high, pivot, word
    while n > FEW:
        # Median of three: sorted runs are split in halves.
        low, high, pivot = words[0], words[n - 1], words[n // 2]
        if low > high:
            low, high = high, low
        pivot = min(max(pivot, low), high)
        i, j = 0, n - 1
        while i <= j:
            while words[i] < pivot:
                i += 1
            while words[j] > pivot:
                j -= 1
            if i <= j:
                words[i], words[j] = words[j], words[i]
                i += 1
                j -= 1
        if j + 1 < n - i:
            sort_words(words, j + 1)
            words += i
            n -= i
        else:
            sort_words(words + i, n - i)
            n = j + 1
    for i in range(1, n):
        word = words[i]
        j = i
        while j > 0 and words[j - 1] > word:
            words[j] = words[j - 1]
            j -= 1
        words[j] = word


cdef class Fold:
    """Builds the levels of a trie from the merged rows of its longest n-grams.

    In the order of the rows (see ``_runs``), the n-grams of a context are contiguous,
    and so are those of its children. When a context ends, all distinct words before
    each of its n-grams have been seen. Memory use is one number per word and level,
    independent of the length of the text.

    Parameters
    ----------
    order : int
        Words in a row, 2 or more.
    n_words : int
        Size of the vocabulary.
    boundary : int
        A context ends at this word, and then its n-grams keep their raw counts.
    n_bits : int
        Bits of a word in a row.
    first : int
        Smallest nearest word of the rows.
    raw : bool
        Whether to add up the counts in the text, too.
    marks : bool
        Whether the boundary is in n-grams. If not, a context ends before it, and nothing
        is before the n-grams there: they only count in contexts that nothing precedes
        anywhere, which keep the counts in the text.

    Notes
    -----
    After all rows, the levels equal those of ``NgramCounts.from_windows`` of the same
    windows, with offsets counted from the first context and n-gram of each level. The
    counts equal those of ``continuation_counts``; without `marks`, those of
    ``KneserNeyLM.fit_stream`` of sentences without a boundary.
    """

    cdef Level* levels
    cdef int longest, n_words, boundary, n_bits
    cdef bint raw, marks
    cdef int next_word  # contexts of one word before this one have been opened
    cdef int depth  # number of words of the open context
    cdef int* open
    cdef int* row

    def __cinit__(
        self, int order, int n_words, int boundary, int n_bits, int first, bint raw,
        bint marks,
    ):
        cdef int k
        self.raw, self.marks = raw, marks
        self.longest, self.n_words, self.boundary = order - 1, n_words, boundary
        self.n_bits, self.next_word, self.depth = n_bits, first, 0
        self.levels = <Level*> calloc(order, sizeof(Level))
        self.open = <int*> calloc(order + 1, sizeof(int))
        self.row = <int*> calloc(order + 1, sizeof(int))
        if self.levels == NULL or self.open == NULL or self.row == NULL:
            raise MemoryError("no memory to build a trie")
        for k in range(self.longest):
            self.levels[k].distinct = <int*> calloc(n_words, sizeof(int))
            # All words follow the root: it needs no list.
            self.levels[k].met = <int*> malloc(n_words * sizeof(int) if k > 0 else 4)
            self.levels[k].total = <int64_t*> calloc(
                n_words if raw or not marks else 1, sizeof(int64_t)
            )
            if (
                self.levels[k].distinct == NULL or self.levels[k].met == NULL
                or self.levels[k].total == NULL
            ):
                raise MemoryError(f"no memory for {n_words} words")

    def __dealloc__(self):
        cdef int k
        if self.levels != NULL:
            for k in range(self.longest + 1):
                free(self.levels[k].context_word.at)
                free(self.levels[k].child_start.at)
                free(self.levels[k].start.at)
                free(self.levels[k].words.at)
                free(self.levels[k].counts.at)
                free(self.levels[k].raw.at)
                free(self.levels[k].distinct)
                free(self.levels[k].total)
                free(self.levels[k].met)
        free(self.levels)
        free(self.open)
        free(self.row)

    def add(self, const uint64_t[:, ::1] rows):
        """Add the next rows, each with its count in the last column."""
        cdef Py_ssize_t i
        cdef bint enough = True
        with nogil:
            for i in range(rows.shape[0]):
                enough = self._add(&rows[i, 0], rows[i, rows.shape[1] - 1])
                if not enough:
                    break
        if not enough:
            raise MemoryError("no memory for the n-grams of one part")

    def end(self, int last):
        """Close all contexts, and add contexts of one word up to before `last`."""
        cdef bint enough
        with nogil:
            enough = self._close(1) and self._open_words(last - 1)
            self.depth = 0
        if not enough:
            raise MemoryError("no memory for the n-grams of one part")

    def take(self, int level):
        """Return and clear the arrays of a level, by name, as bytes.

        ``raw`` is empty if counts in the text are not added up.
        """
        cdef Level* own = &self.levels[level]
        return {
            "context_word": _taken(&own.context_word),
            "child_start": _taken(&own.child_start),
            "start": _taken(&own.start),
            "words": _taken(&own.words),
            "counts": _taken(&own.counts),
            "raw": _taken(&own.raw),
        }

    def sizes(self, int level):
        """Return the numbers of contexts and n-grams of a level so far."""
        return self.levels[level].n_contexts, self.levels[level].n_ngrams

    def distinct(self):
        """Return the number of distinct words before each word, as int32 bytes."""
        return PyBytes_FromStringAndSize(
            <char*> self.levels[0].distinct, self.n_words * sizeof(int)
        )

    cdef bint _add(self, const uint64_t* numbers, uint64_t count) noexcept nogil:
        cdef int* row = self.row
        cdef int per_number = 64 // self.n_bits
        cdef uint64_t mask = (<uint64_t> 1 << self.n_bits) - 1
        cdef int n_left = self.longest + 1
        cdef int depth = self.longest
        cdef int common = 0
        cdef int k = 1
        cdef int place
        cdef bint is_start = False  # of a line, without marks
        cdef int64_t raw = count
        # row[1] is the nearest word, row[longest + 1] the next.
        while n_left > 0:
            for place in range(min(per_number, n_left) - 1, -1, -1):
                row[k] = <int> ((numbers[0] >> (place * self.n_bits)) & mask)
                k += 1
            n_left -= per_number
            numbers += 1
        if not self.marks and row[self.longest + 1] == self.boundary:
            return True
        for k in range(1, depth + (not self.marks)):
            if row[k] == self.boundary:
                is_start = not self.marks
                depth = k - is_start
                break
        while (
            common < depth and common < self.depth
            and row[common + 1] == self.open[common + 1]
        ):
            common += 1
        if common < depth:
            if not self._close(common + 1) or not self._open(common + 1, depth):
                return False
        if is_start:
            self._meet(depth, row[self.longest + 1], raw, 0)
            return True
        if not self._ngram(depth, row[self.longest + 1], raw, raw):
            return False
        self._meet(depth - 1, row[self.longest + 1], raw, 1)
        return True

    cdef inline bint _ngram(
        self, int level, int word, int64_t count, int64_t raw
    ) noexcept nogil:
        cdef Level* own = &self.levels[level]
        own.n_ngrams += 1
        if self.raw and not put(&own.raw, &raw, 8):
            return False
        return put(&own.words, &word, 4) and put(&own.counts, &count, 8)

    cdef inline void _meet(
        self, int level, int word, int64_t raw, int before
    ) noexcept nogil:
        """Count `before` more distinct words before an n-gram of the open context."""
        cdef Level* own = &self.levels[level]
        cdef bint totals = self.raw or not self.marks
        if level > 0 and own.distinct[word] == 0 and not (totals and own.total[word]):
            own.met[own.n_met] = word
            own.n_met += 1
        own.distinct[word] += before
        if totals:
            own.total[word] += raw

    cdef bint _close(self, int first) noexcept nogil:
        """End the open contexts of `first` words or more, longest first."""
        cdef Level* own
        cdef int level, i, word
        cdef int64_t raw = 0
        cdef bint is_extended  # some word is before the context
        # The n-grams of the longest open context are written, but for those of starts.
        for level in range(self.depth - self.marks, first - 1, -1):
            own = &self.levels[level]
            sort_words(own.met, own.n_met)
            is_extended = self.marks
            for i in range(0 if self.marks else own.n_met):
                is_extended |= own.distinct[own.met[i]] > 0
            for i in range(own.n_met):
                word = own.met[i]
                if self.raw or not self.marks:
                    raw = own.total[word]
                    own.total[word] = 0
                if not self._ngram(
                    level, word, own.distinct[word] if is_extended else raw, raw
                ):
                    return False
                own.distinct[word] = 0
                self._meet(level - 1, word, raw, 1)
            own.n_met = 0
        return True

    cdef bint _open(self, int first, int depth) noexcept nogil:
        """Begin the contexts of `first` to `depth` words of the row."""
        cdef Level* own
        cdef int level
        for level in range(first, depth + 1):
            self.open[level] = self.row[level]
            if level == 1:
                if not self._open_words(self.row[1]):
                    return False
                continue
            own = &self.levels[level]
            if not put(&own.context_word, &self.row[level], 4):
                return False
            if not self._begin(level):
                return False
        self.depth = depth
        return True

    cdef bint _open_words(self, int last) noexcept nogil:
        """Begin the contexts of one word, up to that of the word `last`."""
        while self.next_word <= last:
            if not self._begin(1):
                return False
            self.next_word += 1
        return True

    cdef inline bint _begin(self, int level) noexcept nogil:
        cdef Level* own = &self.levels[level]
        own.n_contexts += 1
        if level < self.longest and not put(
            &own.child_start, &self.levels[level + 1].n_contexts, 4
        ):
            return False
        return put(&own.start, &own.n_ngrams, 4)


cdef bytes _taken(Numbers* numbers):
    cdef bytes taken = PyBytes_FromStringAndSize(numbers.at, numbers.n_bytes)
    numbers.n_bytes = 0
    return taken

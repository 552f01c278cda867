"""Totals of a softmax that is computed tile by tile.

The logits of a tile become exponentials while they are in cache, relative to the
maximum of their chunk of words. They are not read again before the backward pass, where
a factor for each chunk turns them into probabilities.
"""

from libc.math cimport INFINITY

from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport LINE, Scratch, Tier, round_up
from nplm._kernels.neural.outputs._output cimport Totals


cdef class Chunks:
    """Exponentials of logits, and their totals, by chunks of words.

    Equivalent to ``reference.neural.score``, of logits.

    Parameters
    ----------
    tier, scratch, at : Tier, Scratch, Activations
        See `Output`.
    n_words, size : int
        Number of words, and of words of a chunk.
    tile_rows : int
        Maximum number of words of a tile, in whole chunks.
    columns : int
        Number of columns of the logits, which are in panels unless it is 1.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, *, Py_ssize_t n_words,
        Py_ssize_t size, Py_ssize_t tile_rows, Py_ssize_t columns,
    ):
        self.loops, self.itemsize = tier.loops, tier.itemsize
        self.columns, self.wide = columns, round_up(columns, LINE)
        self.size, self.n = size, (n_words + size - 1) // size
        self.targets = <int *>scratch.bytes(at.batch_size * sizeof(int))
        self.highs = scratch.numbers(self.n * self.wide)
        self.sums = scratch.numbers(self.n * self.wide)
        self.factors = scratch.numbers(tile_rows // size * self.wide)

    cdef void begin(
        self, const int *words, Py_ssize_t first, Py_ssize_t K, const Totals *own,
    ) noexcept nogil:
        """Set the next words, counted from the word `first`, and reset the totals."""
        cdef Py_ssize_t k
        for k in range(K):
            self.targets[k] = words[k] - <int>first
            own.target[k] = -INFINITY
            own.high[k] = -INFINITY
            own.sum[k] = 0

    cdef void add(
        self, char *p, Py_ssize_t first, Py_ssize_t rows, Py_ssize_t K,
        const Totals *own,
    ) noexcept nogil:
        """Exponentiate a tile of logits, relative to the maximum of each chunk."""
        cdef Py_ssize_t size = self.itemsize, i, start, some, at
        cdef char *high
        cdef char *total
        self.loops.choose(p, first, rows, self.targets, K, self.columns, own.target)
        for i in range((rows + self.size - 1) // self.size):
            start = i * self.size
            some = min(self.size, rows - start)
            at = (first + start) // self.size * self.wide * size
            high, total = <char *>self.highs + at, <char *>self.sums + at
            if self.columns == 1:
                self.loops.exp_column(p + start * size, some, high, total)
            else:
                self.loops.exp_columns(
                    p + start * LINE * size, some, rows, self.columns, high, total)
            self.loops.raise_maxima(high, K, own.high)

    cdef void total(self, Py_ssize_t K, const Totals *own) noexcept nogil:
        """Add up the exponentials, relative to the maximum of all chunks."""
        cdef Py_ssize_t i, width = self.wide * self.itemsize
        for i in range(self.n):
            self.loops.exp_differences(
                <char *>self.highs + i * width, own.high, self.wide, self.factors)
            self.loops.add_scaled(
                <char *>self.sums + i * width, self.factors, K, own.sum)

    cdef void share(
        self, Py_ssize_t first, Py_ssize_t rows, Py_ssize_t K, const Totals *all,
    ) noexcept nogil:
        """Compute the factors that turn exponentials of a tile into -P, by chunk."""
        cdef Py_ssize_t size = self.itemsize, i
        cdef char *factor
        for i in range((rows + self.size - 1) // self.size):
            factor = <char *>self.factors + i * self.columns * size
            self.loops.exp_differences(
                <char *>self.highs + (first // self.size + i) * self.wide * size,
                all.high, self.columns, factor)
            self.loops.share(factor, all.sum, K, self.columns)

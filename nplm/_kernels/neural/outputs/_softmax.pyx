"""Softmax output units, which do nearly all the arithmetic (section 3.2).

A row of E has the parameters of one word, [U_j | W_j | b_j], and z = [a | x | 1], so
that equation (1) is y = E z. A member of a team has some of the rows. Members only
share the maximum and sum of exponentials of their words before the backward pass, and
add up dL/dz after it.

Words are processed tile by tile: logits, their maximum and exponentials are computed
while the tile is in cache, and the exponentials are kept for the backward pass (to
compute them again would take a third of the time). The size of a tile depends on the
processor's caches. To keep results independent of it, maxima and sums are those of
chunks of words, of which a tile has several (`Chunks`).
"""

from libc.math cimport exp
from libc.string cimport memcpy, memset

from nplm._kernels.neural._features cimport Gatherer
from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Scratch, Tier
from nplm._kernels.neural._solvers cimport Solver, Step
from nplm._kernels.neural.outputs._chunks cimport Chunks
from nplm._kernels.neural.outputs._output cimport Rows

from nplm._kernels.neural import _caches
from nplm._kernels.neural._products import products_of

cdef enum:
    PIECE = 1 << 18          # bytes of E
    BFLOAT16_TILE = 192      # processors with bfloat16 have large caches
    AHEAD = 8                # rows to prefetch from memory


cdef class Softmax(Rows):
    """Softmax over all words, as in the paper.

    Equivalent to ``reference.neural.softmax``.

    Parameters
    ----------
    tier : Tier
        Loops and products for this processor.
    scratch, at : Scratch, Activations
        See `Output`.
    n_words : int
        Number of words of this member: its rows of E.
    solver : Solver or None
        Solver that updates the rows. Scoring has none, and keeps the exponentials of
        one tile instead of those of all words.
    start_row : int
        The first row of an update. Threads that share the rows start far apart,
        because two that write the same cache lines are no faster than one.
    **options
        Options of `Rows`.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, *args, Py_ssize_t n_words,
        Solver solver, Py_ssize_t start_row=0, **options,
    ):
        cdef Py_ssize_t columns = at.columns
        if not 0 <= start_row <= n_words:
            raise ValueError(f"start_row={start_row} is none of {n_words} rows")
        self.start_row = start_row
        caches = _caches.found()
        row_bytes = self.stride * self.itemsize
        # Processors prefetch a stream from cache well, but not from memory. Prefetched
        # too early, lines of a small matrix evict each other.
        self.rows_ahead = 0 if caches.holds(n_words * row_bytes) else AHEAD
        rounded = tier.bfloat16 != NULL and columns > 1
        # A single example trains in one pass over all rows: one tile.
        alone = columns == 1 and not at.scoring
        if alone:
            tile_rows = chunk = max(1, n_words)
        elif rounded:  # the rounding of a gradient depends on the tile
            tile_rows = chunk = BFLOAT16_TILE
        else:
            tile_rows = caches.tile_rows(self.stride, columns, self.itemsize)
            chunk = _caches.CHUNK
        self.tile_rows = tile_rows
        self.n_tiles = (n_words + self.tile_rows - 1) // self.tile_rows
        self.chunks = Chunks(
            tier, scratch, at, n_words=n_words, size=chunk, tile_rows=tile_rows,
            columns=columns)
        self.start_tile = start_row // self.tile_rows
        self.piece = max(1, PIECE // (self.stride * self.itemsize * 8)) * 8
        self.products = products_of(
            tier, scratch, columns=columns, n_outputs=self.n_outputs, stride=self.stride,
            tile_rows=self.tile_rows)
        self.p = scratch.numbers(
            columns * (min(self.tile_rows, max(1, n_words)) if at.scoring
                       else max(1, n_words)))
        if solver is not None:
            most = self.piece if alone else self.tile_rows
            self.memory = scratch.numbers(solver.room(most, self.stride))

    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil:
        """Compute the logits of K examples, their maximum and sum of exponentials.

        Equivalent to, with ``y = z @ E.T`` (K, n_words)::

            high = y.max(axis=1)
            sum = np.exp(y - high[:, None]).sum(axis=1)
            target = y[np.arange(K), words - first]

        In training the exponentials (relative to their chunk's maximum) stay in p.
        """
        cdef Py_ssize_t columns = self.columns, size = self.itemsize
        cdef Py_ssize_t tile, first, rows
        cdef char *p
        self.chunks.begin(self.words, self.first, K, &self.own)
        if columns == 1 and not self.at.scoring:
            self.forward_one()
            return
        self.products.begin(self.z, K)
        for tile in range(self.n_tiles):
            first = (self.start_tile + tile) % self.n_tiles * self.tile_rows
            rows = min(self.tile_rows, self.n_words - first)
            p = <char *>self.p + (0 if self.at.scoring else first * columns * size)
            self.products.logits(self.row_of(first), rows, p)
            if logits != NULL:
                if columns == 1:
                    memcpy(<char *>logits + first * size, p, rows * size)
                else:
                    self.loops.out_of_panels(
                        p, rows, K, <char *>logits + first * size, self.n_words)
            self.chunks.add(p, first, rows, K, &self.own)
        self.chunks.total(K, &self.own)

    cdef double logit(self, Py_ssize_t k, int word) noexcept nogil:
        """Equivalent to ``E[word - first] @ z[k]``; never of bfloat16."""
        cdef void *row = self.row_of(word - self.first)
        cdef void *z = <char *>self.z + k * self.stride * self.itemsize
        cdef double wide
        cdef float narrow
        if self.itemsize == sizeof(double):
            self.loops.row_dots(row, 1, self.stride, self.stride, z, 0, &wide)
            return wide
        self.loops.row_dots(row, 1, self.stride, self.stride, z, 0, &narrow)
        return narrow

    cdef void forward_one(self) noexcept nogil:
        """Compute `forward` of one training example; it reads each row of E once."""
        cdef Py_ssize_t start = self.start_row, size = self.itemsize
        if self.n_words == 0:  # a member beyond the last word
            return
        self.loops.row_dots(
            self.row_of(start), self.n_words - start, self.stride, self.stride, self.z,
            self.rows_ahead, <char *>self.p + start * size)
        self.loops.row_dots(
            self.row_of(0), start, self.stride, self.stride, self.z, self.rows_ahead,
            self.p)
        self.loops.choose(
            self.p, 0, self.n_words, self.chunks.targets, 1, 1, self.own.target)
        self.own.sum[0] = self.loops.exp_row(self.p, self.n_words, &self.row_max)
        self.own.high[0] = self.row_max

    cdef void backward(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Compute the gradient of the log-likelihood for z, and update the rows.

        Equivalent to, with ``p`` the probabilities and the old E on the right::

            g = np.eye(n_words)[words - first] - p
            dz = g @ E
            E[:] = E + rate * g.T @ z - decay * E (but for the bias)
        """
        cdef Py_ssize_t columns = self.columns, size = self.itemsize
        cdef Py_ssize_t tile, first, rows
        cdef char *p
        solver.begin_rows(step, self.keep, self.n_outputs, self.stride)
        memset(self.slopes, 0, self.n_slopes * size)
        if columns == 1:
            self.backward_one(solver, step)
            return
        for tile in range(self.n_tiles):
            first = (self.start_tile + tile) % self.n_tiles * self.tile_rows
            rows = min(self.tile_rows, self.n_words - first)
            p = <char *>self.p + first * columns * size
            self.chunks.share(first, rows, K, &self.all)
            self.products.slopes(
                p, self.chunks.factors, self.chunks.size, first, rows, self.chunks.targets, K)
            self.products.gradient(self.row_of(first), rows, p)
            solver.tile(step, self.E, self.row + first, rows, p, self.products,
                        self.keep, self.memory)
        self.products.end(self.slopes)

    cdef void backward_one(self, Solver solver, const Step *step) noexcept nogil:
        """Compute `backward` of one example; it reads and writes each row of E once.

        It goes from the last piece to the first, because the last rows of the forward pass
        are still in cache, and the next one starts with the first. Within a piece it goes
        forwards, which processors prefetch.
        """
        cdef Py_ssize_t size = self.itemsize, stop, first, start
        cdef int part
        self.loops.scale(
            self.p, self.n_words, -exp(self.row_max - self.all.high[0]) / self.all.sum[0])
        self.loops.add_targets(self.p, 0, self.n_words, self.chunks.targets, 1, 1)
        for part in range(2):
            first = 0 if part == 0 else self.start_row
            stop = self.start_row if part == 0 else self.n_words
            while stop > first:
                start = max(first, stop - self.piece)
                solver.rows(
                    step, self.E, self.row + start, stop - start, 0, self.stride, self.z,
                    <char *>self.p + start * size, self.keep, self.slopes, self.memory)
                stop = start


cdef class TiedSoftmax(Softmax):
    """Softmax of y = b + C s, with the word features as weights.

    Equivalent to ``reference.neural.softmax`` with E = [C | b].

    Parameters
    ----------
    *args, **options
        Arguments of `Softmax`.
    gatherer : Gatherer or None
        Kernel that collects the gradients of C and b; None when scoring.
    """

    def __cinit__(self, *args, Gatherer gatherer, **options):
        self.gatherer = gatherer

    cdef void backward(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        Softmax.backward(self, K, self.gatherer, step)

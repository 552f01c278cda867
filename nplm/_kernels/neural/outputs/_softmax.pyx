"""The output units: where nearly all the arithmetic is (section 3.2).

A row of E holds all that belongs to one word, [U_j | W_j | b_j], and
z = [a | x | 1], so that equation (1) reads y = E z. A member of a team has some of
the rows; the maximum and the sum of exponentials of its words are all that members
need to share before the backward pass, and dL/dz all they need to add up after it.

Words are taken a tile at a time: logits, their maximum and exponentials are
computed while the tile is in cache, and the exponentials are kept for the
backward pass (to compute them again would cost a third of the time). How many words
make a tile depends on the processor's caches; so that no bit of a result does, the
maximum and the sum are those of a chunk of words, of which a tile has some (`Chunks`).
"""

from libc.math cimport exp
from libc.string cimport memcpy, memset

from nplm._kernels.neural._features cimport Gatherer
from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Scratch, Tier
from nplm._kernels.neural._products cimport Bfloat16Products, Products
from nplm._kernels.neural._solvers cimport Solver, Step
from nplm._kernels.neural.outputs._chunks cimport Chunks
from nplm._kernels.neural.outputs._output cimport Rows

from nplm._kernels.neural import _caches

cdef enum:
    PIECE = 1 << 18          # bytes of E
    BFLOAT16_TILE = 192      # whose processors have large caches
    AHEAD = 8                # rows, when they come from memory


cdef class Softmax(Rows):
    """The paper's softmax over all words.

    Equivalent to ``reference.neural.softmax``.

    Parameters
    ----------
    tier : Tier
        Whose loops and products.
    scratch, at : Scratch, Activations
        See `Output`.
    n_words : int
        This member's words: its rows of E.
    solver : Solver or None
        Who trains. Scoring, which has none, needs one tile of exponentials instead of
        all words'.
    start_row : int
        Where an update begins: threads that share the rows begin far
        apart, for two that write to the same cache lines at the same time are no
        faster than one.
    **options
        Of `Rows`.
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
        # The processor foresees one stream from its cache well enough, but not from
        # memory; asked for too early, lines of a small matrix drive each other out.
        self.rows_ahead = 0 if caches.holds(n_words * row_bytes) else AHEAD
        rounded = tier.bfloat16 != NULL and columns > 1
        # One example at a time trains in one pass over all rows: one tile.
        alone = columns == 1 and not at.scoring
        if alone:
            tile_rows = chunk = max(1, n_words)
        elif rounded:  # a tile's gradient is a sum of its own: its bits are too
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
        # One example at a time waits for the weights: bfloat16 has nothing to gain.
        kind = Bfloat16Products if rounded else Products
        self.products = kind(
            tier, scratch, columns=columns, n_outputs=self.n_outputs, stride=self.stride,
            tile_rows=self.tile_rows)
        self.p = scratch.numbers(
            columns * (min(self.tile_rows, max(1, n_words)) if at.scoring
                       else max(1, n_words)))
        if solver is not None:
            most = self.piece if alone else self.tile_rows
            self.memory = scratch.numbers(solver.room(most, self.stride))

    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil:
        """Logits of K examples, and their maximum and sum of exponentials.

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
            self.loops.row_dots(row, 1, self.stride, z, 0, &wide)
            return wide
        self.loops.row_dots(row, 1, self.stride, z, 0, &narrow)
        return narrow

    cdef void forward_one(self) noexcept nogil:
        """`forward` to train on one example: each row of E is read once."""
        cdef Py_ssize_t start = self.start_row, size = self.itemsize
        if self.n_words == 0:  # the member beyond the last word
            return
        self.loops.row_dots(
            self.row_of(start), self.n_words - start, self.stride, self.z,
            self.rows_ahead, <char *>self.p + start * size)
        self.loops.row_dots(
            self.row_of(0), start, self.stride, self.z, self.rows_ahead, self.p)
        self.loops.choose(
            self.p, 0, self.n_words, self.chunks.targets, 1, 1, self.own.target)
        self.own.sum[0] = self.loops.exp_row(self.p, self.n_words, &self.row_max)
        self.own.high[0] = self.row_max

    cdef void backward(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Gradient of the log-likelihood for z, and the update of the rows.

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
        """`backward` for one example: each row of E is read and written once.

        From the last row to the first: the forward pass ended with the last, which
        are still in cache, and the next forward pass begins with the first. A piece
        of many rows is gone through forwards, as processors foresee it.
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
                    step, self.E, self.row + start, stop - start, self.z,
                    <char *>self.p + start * size, self.keep, self.slopes, self.memory)
                stop = start


cdef class TiedSoftmax(Softmax):
    """A softmax whose weights are the features of the words: y = b + C s.

    Equivalent to ``reference.neural.softmax`` with E = [C | b].

    Parameters
    ----------
    *args, **options
        Of `Softmax`.
    gatherer : Gatherer or None
        Who takes the gradients of C and b; None to score.
    """

    def __cinit__(self, *args, Gatherer gatherer, **options):
        self.gatherer = gatherer

    cdef void backward(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        Softmax.backward(self, K, self.gatherer, step)

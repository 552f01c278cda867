"""Everything one thread owns while it trains or scores: allocated once a fit.

Large buffers given back to the system and asked for again at every batch would
cost a page fault for every 4 KB of them.
"""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cdef enum:
    ALIGNMENT = 64  # bytes, a cache line and an AVX-512 vector


cdef class Workspace:
    """Scratch memory for mini-batches of one network.

    Parameters
    ----------
    batch_size : int
        Examples of a mini-batch, K.
    n_words, n_inputs, n_hidden, n_outputs : int
        |V|, (n - 1) m, h, and the width of an output row: h + 1, or
        h + (n - 1) m + 1 with direct connections.
    itemsize : int
        4 for float32, 8 for float64.
    keep_probabilities : bool
        Training keeps the exponentials of all words between the forward and
        the backward pass; scoring needs one tile of them.
    tile_rows : int
        Words of a tile, so that its rows and exponentials stay in cache.
    """

    def __cinit__(
        self, Py_ssize_t batch_size, Py_ssize_t n_words, Py_ssize_t n_inputs,
        Py_ssize_t n_hidden, Py_ssize_t n_outputs, Py_ssize_t itemsize, *,
        bint keep_probabilities, Py_ssize_t tile_rows=256,
    ):
        cdef Py_ssize_t lane = ALIGNMENT // itemsize
        cdef Py_ssize_t K = batch_size, columns
        columns = 1 if K == 1 else (K + lane - 1) // lane * lane
        self.batch_size = K
        self.n_columns = columns
        self.itemsize = itemsize
        # One example at a time has one pass over all rows: one tile.
        self.tile_rows = n_words if K == 1 else min(tile_rows, n_words)
        self.n_tiles = (n_words + self.tile_rows - 1) // self.tile_rows

        cdef Py_ssize_t kept = n_words if keep_probabilities else self.tile_rows
        cdef Py_ssize_t[16] sizes
        sizes[:] = [
            K * n_inputs * itemsize, K * n_hidden * itemsize, K * n_outputs * itemsize,
            K * n_hidden * itemsize, K * n_inputs * itemsize,
            n_outputs * columns * itemsize, n_outputs * columns * itemsize,
            kept * columns * itemsize,
            self.n_tiles * columns * itemsize, self.n_tiles * columns * itemsize,
            columns * itemsize,
            K * sizeof(int), K * sizeof(double),
            columns * sizeof(double), columns * sizeof(double), 0,
        ]
        cdef Py_ssize_t i, total = ALIGNMENT
        for i in range(16):
            sizes[i] = (sizes[i] + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
            total += sizes[i]
        self.nbytes = total
        self.memory = malloc(total)
        if self.memory == NULL:
            raise MemoryError(
                f"a mini-batch of {batch_size} examples over {n_words} words needs "
                f"{total / 1e6:.0f} MB of scratch memory; lower batch_size"
            )
        memset(self.memory, 0, total)

        cdef uintptr_t at = (
            (<uintptr_t>self.memory + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        )
        cdef (void *)[16] start
        for i in range(16):
            start[i] = <void *>at
            at += sizes[i]
        self.x, self.a, self.z = start[0], start[1], start[2]
        self.da, self.dx = start[3], start[4]
        self.zt, self.dzt = start[5], start[6]
        self.p, self.tile_max, self.tile_sum = start[7], start[8], start[9]
        self.factor = start[10]
        self.target = <int *>start[11]
        self.target_logit = <double *>start[12]
        self.total_max = <double *>start[13]
        self.total_sum = <double *>start[14]

    def __dealloc__(self):
        free(self.memory)

"""Everything one thread owns while it trains or scores: allocated once a fit.

Large buffers given back to the system and asked for again at every batch would
cost a page fault for every 4 KB of them.
"""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cdef extern from "float32.h" nogil:
    const Loops *find_loops(const char *tier)

cdef Py_ssize_t ALIGNMENT = 64  # bytes: a cache line, and an AVX-512 vector
cdef Py_ssize_t LANES = 16      # rows of E and columns of examples fill up to these

# From fastest to slowest; "blas" is SciPy's, and serves float64 too.
TIERS = ("avx512", "avx2", "plain", "blas")


def available_tiers():
    """Names of the kernel tiers that this processor can run, fastest first."""
    return [
        tier for tier in TIERS
        if tier == "blas" or find_loops(tier.encode()) != NULL
    ]


def row_stride(Py_ssize_t n_outputs):
    """Length of a row of E: its parameters, then zeros to fill whole vectors."""
    return (n_outputs + LANES - 1) // LANES * LANES


cdef class Workspace:
    """Scratch memory for mini-batches of one network, and the loops to use.

    Parameters
    ----------
    tier : str
        One of `available_tiers()`; float64 uses "blas" whatever is named.
    batch_size : int
        Examples of a mini-batch, K.
    n_words, n_inputs, n_hidden, n_outputs : int
        |V|, (n - 1) m, h, and the parameters of an output row: h + 1, or
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
        self, str tier, Py_ssize_t batch_size, Py_ssize_t n_words,
        Py_ssize_t n_inputs, Py_ssize_t n_hidden, Py_ssize_t n_outputs,
        Py_ssize_t itemsize, *, bint keep_probabilities, Py_ssize_t tile_rows=192,
    ):
        if tier not in available_tiers():
            raise ValueError(
                f"kernel tier {tier!r} is not one this processor has: "
                f"choose among {', '.join(available_tiers())}"
            )
        self.loops = NULL
        if itemsize == 4 and tier != "blas":
            self.loops = find_loops(tier.encode())
        cdef Py_ssize_t K = batch_size
        cdef Py_ssize_t columns = 1 if K == 1 else (K + LANES - 1) // LANES * LANES
        cdef Py_ssize_t stride = row_stride(n_outputs)
        self.batch_size = K
        self.n_columns = columns
        self.stride = stride
        # One example at a time has one pass over all rows: one tile.
        self.tile_rows = max(1, n_words if K == 1 else min(tile_rows, n_words))
        self.n_tiles = (n_words + self.tile_rows - 1) // self.tile_rows

        cdef Py_ssize_t kept = n_words if keep_probabilities else self.tile_rows
        cdef Py_ssize_t[19] sizes
        sizes[:] = [
            K * n_inputs * itemsize, K * n_hidden * itemsize, K * stride * itemsize,
            K * n_hidden * itemsize, K * n_inputs * itemsize,
            stride * columns * itemsize, stride * columns * itemsize,
            kept * columns * itemsize,
            self.n_tiles * columns * itemsize, self.n_tiles * columns * itemsize,
            columns * itemsize, stride * itemsize,
            K * sizeof(int), K * sizeof(double),
            columns * sizeof(double), columns * sizeof(double),
            columns * sizeof(double), columns * sizeof(double),
            K * sizeof(int),
        ]
        cdef Py_ssize_t i, total = ALIGNMENT
        for i in range(19):
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

        cdef uintptr_t at = <uintptr_t>self.memory
        at = (at + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        cdef (void *)[19] start
        for i in range(19):
            start[i] = <void *>at
            at += sizes[i]
        self.x, self.a, self.z = start[0], start[1], start[2]
        self.da, self.dx = start[3], start[4]
        self.zt, self.dzt = start[5], start[6]
        self.p, self.tile_max, self.tile_sum = start[7], start[8], start[9]
        self.factor, self.keep = start[10], start[11]
        self.target = <int *>start[12]
        self.target_logit = <double *>start[13]
        self.total_max = <double *>start[14]
        self.total_sum = <double *>start[15]
        self.softmax_max = <double *>start[16]
        self.softmax_sum = <double *>start[17]
        self.word = <int *>start[18]

    def __dealloc__(self):
        free(self.memory)

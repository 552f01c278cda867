"""Everything one thread owns while it trains or scores: allocated once a fit.

Scoring promises more than training: what it computes of an example depends on that
example only, to the last bit, not on its neighbours in the mini-batch, its place
among them or their number. Hence an example alone is scored by the kernels for
many; those of `tier.h` and `bfloat16.h` add up each number's terms in one order,
whatever block it falls into, and BLAS, which does not, gets an example at a time.

Large buffers given back to the system and asked for again at every batch would
cost a page fault for every 4 KB of them.
"""

from libc.stdint cimport uintptr_t

import numpy as np

cdef extern from "float32.h" nogil:
    const Loops *find_loops(const char *tier)

cdef extern from "bfloat16.h" nogil:
    const Bfloat16 *find_bfloat16(const char *tier)

cdef Py_ssize_t ALIGNMENT = 64  # bytes: a cache line, and an AVX-512 vector
cdef Py_ssize_t LANES = 16      # rows of E and columns of examples fill up to these


def available_tiers(str precision="float32"):
    """Names of the kernel tiers that this processor can run, fastest first.

    "blas" is SciPy's, and float64's only one. For "bfloat16", "plain" does in C
    what a processor would do: for tests.
    """
    if precision == "float64":
        return ["blas"]
    if precision == "bfloat16":
        return [tier for tier in ("amx", "avx512", "plain")
                if find_bfloat16(tier.encode()) != NULL]
    return [tier for tier in ("avx512", "avx2", "plain")
            if find_loops(tier.encode()) != NULL] + ["blas"]


cdef Py_ssize_t round_up(Py_ssize_t n, Py_ssize_t whole) noexcept nogil:
    return (n + whole - 1) // whole * whole


def row_stride(Py_ssize_t n_outputs):
    """Length of a row of E: its parameters, then zeros to fill whole vectors."""
    return round_up(n_outputs, LANES)


cdef class Workspace:
    """Scratch memory for mini-batches of one network, and the loops to use.

    Parameters
    ----------
    tier : str
        One of ``available_tiers(precision)``.
    batch_size : int
        Examples of a mini-batch, K.
    n_words, n_inputs, n_hidden, n_outputs : int
        |V|, (n - 1) m, h, and the parameters of an output row: h + 1, or
        h + (n - 1) m + 1 with direct connections.
    precision : str
        "float32", "float64", or "bfloat16" for products of float32 parameters
        rounded to that.
    scoring : bool
        To score, not to train. Training keeps the exponentials of all words
        between the forward and the backward pass; scoring needs one tile of them.
    tile_rows : int
        Words of a tile, so that its rows and exponentials stay in cache.
    """

    def __cinit__(
        self, str tier, Py_ssize_t batch_size, Py_ssize_t n_words,
        Py_ssize_t n_inputs, Py_ssize_t n_hidden, Py_ssize_t n_outputs,
        str precision, *, bint scoring, Py_ssize_t tile_rows=192,
    ):
        if tier not in available_tiers(precision):
            raise ValueError(
                f"kernel tier {tier!r} is not one this processor has for {precision}: "
                f"choose among {', '.join(available_tiers(precision))}"
            )
        cdef bint alone = batch_size == 1 and not scoring
        self.scoring = scoring
        self.loops = NULL
        self.bfloat16 = NULL
        if precision == "bfloat16":
            # One example at a time waits for the weights: nothing to gain.
            self.bfloat16 = NULL if alone else find_bfloat16(tier.encode())
            self.loops = find_loops(b"plain" if tier == "plain" else b"avx512")
        elif tier != "blas":
            self.loops = find_loops(tier.encode())
        cdef Py_ssize_t itemsize = 8 if precision == "float64" else 4
        cdef Py_ssize_t K = batch_size
        cdef Py_ssize_t columns = 1 if alone else round_up(K, LANES)
        cdef Py_ssize_t stride = row_stride(n_outputs)
        self.batch_size = K
        self.n_columns = columns
        self.stride = stride
        # One example at a time trains in one pass over all rows: one tile.
        self.tile_rows = max(1, n_words if alone else min(tile_rows, n_words))
        self.n_tiles = (n_words + self.tile_rows - 1) // self.tile_rows

        cdef Py_ssize_t kept = self.tile_rows if scoring else n_words
        cdef Py_ssize_t R = round_up(self.tile_rows, PANEL)
        cdef Py_ssize_t D = round_up(stride, PANEL)
        cdef Py_ssize_t N = round_up(columns, PANEL)
        if self.bfloat16 == NULL:
            R = D = N = 0
        cdef Py_ssize_t[26] sizes
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
            R * D * 2, R * N * 2, D * N * 2, R * N * 2, N * D * 2, N * sizeof(float),
            0 if alone else n_inputs * columns * itemsize,
        ]
        cdef Py_ssize_t i, total = ALIGNMENT
        for i in range(26):
            sizes[i] = round_up(sizes[i], ALIGNMENT)
            total += sizes[i]
        try:
            # NumPy asks for huge pages, without which large strides are slow.
            self.memory = np.zeros(total, dtype=np.uint8)
        except MemoryError as error:
            raise MemoryError(
                f"a mini-batch of {batch_size} examples over {n_words} words needs "
                f"{total / 1e6:.0f} MB of scratch memory; lower batch_size"
            ) from error

        cdef uintptr_t at = <uintptr_t>&self.memory[0]
        at = (at + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        cdef (void *)[26] start
        for i in range(26):
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
        self.left_E, self.left_g = <bf16 *>start[19], <bf16 *>start[20]
        self.right_zt, self.right_g = <bf16 *>start[21], <bf16 *>start[22]
        self.right_z, self.ones = <bf16 *>start[23], <float *>start[24]
        self.xt = start[25]
        for i in range(N):
            self.ones[i] = 1
        self.R, self.D, self.N = R, D, N

from nplm._kernels.neural._solvers cimport Parameter
from nplm._kernels.neural.outputs._chunks cimport Chunks
from nplm._kernels.neural.outputs._output cimport Output


cdef struct Words:
    # Some words, and arrays computed from them.
    char *C                   # (n, m) their features
    char *E                   # (n, columns of E) their rows
    char *G                   # (n, lanes) exp(-2 H_next C), in panels
    char *w                   # (n, lanes) -2 v, or (lanes,) where words share one v
    char *bias                # (n,)
    # gradients: of G's sums, v, the logits' sum over examples, C and E
    char *dG                  # (n, lanes)
    char *dv                  # (n, lanes), or (lanes,)
    char *sums                # (n,)
    char *dC                  # (n, m)
    char *dE                  # (n, columns of E)


cdef class Energies(Output):
    cdef Parameter E, C, H_next, v
    cdef Py_ssize_t h, m
    cdef Py_ssize_t lanes     # hidden units, filled up to whole vectors
    cdef Py_ssize_t w_stride  # between the rows of w: 0 where words share one
    cdef bint ready           # whether the arrays of the words are up to date
    # of the team
    cdef void *z              # (K, lanes) exp(-2 (d + Hx)), x of the context
    cdef void *Ht             # (m, lanes) H_next, transposed, in panels
    # gradients that members add up: of z, (K, lanes), and of shared arrays
    cdef void *dH_next        # (h, m)
    cdef void *dv_shared      # (lanes,)
    cdef void meet(self, const Words *words, Py_ssize_t n) noexcept nogil
    cdef void weigh(self, const Words *words, Py_ssize_t n) noexcept nogil
    cdef void logits(
        self, const Words *words, Py_ssize_t n, Py_ssize_t k, Py_ssize_t K,
        void *out) noexcept nogil
    cdef void begin_slopes(self, const Words *words, Py_ssize_t n) noexcept nogil
    cdef void add_slopes(
        self, const Words *words, Py_ssize_t n, Py_ssize_t k, Py_ssize_t K,
        const void *g) noexcept nogil
    cdef void end_slopes(self, const Words *words, Py_ssize_t n) noexcept nogil


cdef class Energy(Energies):
    cdef Chunks chunks        # a tile is one
    cdef Py_ssize_t row       # of E, this member's first
    cdef Py_ssize_t tile_rows, n_tiles
    cdef Words all_words      # this member's, but with what is a tile's
    cdef char *one_G          # (lanes,) of one word
    cdef void *dC             # (rows of C, m) of all members' words
    cdef void *p              # (n_words, columns) exp of the logits, or a tile's; panels
    cdef Words tile(self, Py_ssize_t first) noexcept nogil

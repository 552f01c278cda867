from nplm._kernels.neural._output cimport Output
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef class Energy(Output):
    cdef Parameter E, C, H_next, v
    cdef Solver solver
    cdef Step step            # of this mini-batch
    cdef Py_ssize_t row       # of E, this member's first
    cdef Py_ssize_t h, m
    cdef Py_ssize_t lanes     # hidden units, filled up to whole vectors
    cdef Py_ssize_t w_stride  # between the rows of w: 0 where words share one
    cdef Py_ssize_t tile_rows, n_tiles
    cdef bint ready           # whether G is that of the parameters, for good
    cdef int *targets         # (K,) words, counted from this member's first
    # of the team
    cdef void *z              # (K, lanes) exp(-2 (d + Hx)), x of the context
    cdef void *Ht             # (m, lanes) H_next, transposed, in panels
    cdef void *dC             # (n_words, m) of all words
    # of this member's words
    cdef void *G              # (n_words, lanes) exp(-2 H_next C), a tile's in panels
    cdef void *one            # (lanes,) of G, of one word
    cdef void *p              # (n_words, columns) exponentials of the logits, or a tile's;
                              # in panels
    cdef void *tile_max       # (n_tiles, columns)
    cdef void *tile_sum       # (n_tiles, columns)
    cdef void *factor         # (columns,)
    # of a tile's words
    cdef void *w              # (rows, lanes) -2 v, or (lanes,)
    cdef void *bias           # (rows,)
    cdef void *dG             # (rows, lanes)
    cdef void *dv             # (rows, lanes) of their own, or (lanes,) of all
    cdef void *sums           # (rows,)
    cdef void *dE             # (rows, columns of E)
    # gradients that members add up: of z, (K, lanes), and of what words share
    cdef void *dH_next        # (h, m)
    cdef void *dv_shared      # (lanes,)
    cdef void *rows_of(self, Parameter p, Py_ssize_t row) noexcept nogil
    cdef void weigh(self, Py_ssize_t first, Py_ssize_t rows) noexcept nogil
    cdef void meet(self) noexcept nogil

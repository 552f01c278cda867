from libc.stdint cimport uint64_t

from nplm._kernels.neural.hidden._hidden cimport Hidden
from nplm._kernels.neural._inputs cimport Activations, Inputs
from nplm._kernels.neural._loops cimport Loops
from nplm._kernels.neural._solvers cimport Clock


cdef class Mask:
    """Dropout mask: the factors, 0 or a scale, of n values of each example."""

    cdef const Loops *loops
    cdef Clock clock
    cdef Activations at
    cdef const uint64_t *seed
    cdef object seeds
    cdef Py_ssize_t threshold, n, stride, itemsize, run_length
    cdef double scale
    cdef void *factors        # (masks, stride) 0 or scale
    cdef Py_ssize_t *of       # (K,) the mask of each example
    cdef void draw(self, Py_ssize_t K) noexcept nogil
    cdef void draw_of(self, const int *contexts, Py_ssize_t n, Py_ssize_t K) noexcept nogil
    cdef void apply(self, void *values, Py_ssize_t K) noexcept nogil


cdef class DroppedInputs(Inputs):
    cdef Inputs inputs
    cdef Mask mask


cdef class DroppedUnits(Hidden):
    cdef Hidden hidden
    cdef Activations inner    # what `hidden` is given: its a is not dropped
    cdef Mask mask

from nplm._kernels.neural._products cimport Products
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step

cdef enum Kind:
    NOTHING
    VISITED           # some rows, each once
    DENSE             # all rows
    VECTOR            # all numbers, without weight decay


cdef struct Gradient:
    # That of one parameter, by the examples of one member.
    Kind kind
    Py_ssize_t n      # visited rows
    Py_ssize_t n_alike  # of these, the first are those of all members
    Py_ssize_t n_rows, columns
    int *rows
    void **at         # where their gradients are
    int *places       # (rows of the parameter,) of a row among them, or -1
    void *values      # memory of the shape of the parameter


cdef class Gradients(Solver):
    """Gradients of the examples of one member, collected for an update by all."""

    cdef Solver solver        # of all members, which makes the update
    cdef Parameter parameter  # the first of a list
    cdef unsigned char[::1] whole_values
    cdef Py_ssize_t n_parameters
    cdef Gradient *of         # one a parameter
    cdef void begin(self) noexcept nogil
    cdef void fill_whole(self) noexcept nogil
    cdef Py_ssize_t packed(self) noexcept nogil
    cdef Py_ssize_t most_posted(self) noexcept nogil
    cdef void pack(
        self, char *to, void *alike, int n_members, int member) noexcept nogil
    cdef void unpack(self, char *packed, Gradients first, void *alike) noexcept nogil
    cdef void visit_row(
        self, Gradient *gradient, int row, void *at) noexcept nogil
    cdef void *take(
        self, Parameter p, Py_ssize_t first, Py_ssize_t n) noexcept nogil
    cdef void *whole(self, Parameter p, Kind kind) noexcept nogil
    cdef void update(
        self, Parameter p, Gradient **members, int n_members, int member,
        bint alone, const Step *step) noexcept nogil
    cdef void merge(
        self, Parameter p, Gradient **members, int n_members, int member,
        bint alone, const Step *step) noexcept nogil

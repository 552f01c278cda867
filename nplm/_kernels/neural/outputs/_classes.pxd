from nplm._kernels.neural._solvers cimport Solver
from nplm._kernels.neural._team cimport MAX_MEMBERS
from nplm._kernels.neural.outputs._output cimport Rows
from nplm._kernels.neural.outputs._softmax cimport Softmax


cdef class Classes(Rows):
    cdef Softmax classes              # of the classes
    cdef Softmax rest                 # of all words' rows, where all are asked for
    cdef Solver solver
    cdef Py_ssize_t n_classes
    cdef const int[::1] labels        # the class of each word
    cdef const int[::1] order         # the word of each row, from the first word's on
    cdef int *places                  # (n_words,) and the row of each word
    cdef const Py_ssize_t[::1] starts  # (n_classes + 1,) where the words of each begin
    cdef Py_ssize_t largest           # words of a class, at most
    cdef int *labels_here             # (K,) the classes of the next words
    cdef int *heads                   # (n_classes,) -1 between mini-batches
    cdef int *nexts                   # (K,) the next example with the same class, or -1
    cdef int *examples                # (K,) those of a class follow each other
    cdef void *zs                     # (K, stride) z in their order
    cdef void *dzs                    # (K, stride)
    cdef void *p                      # (K, largest) within the classes, then slopes
    cdef void *memory                 # (BLOCK, stride)
    cdef void *class_logits           # (K, n_classes)
    cdef void *row                    # (n_words,)
    cdef void *block                  # (largest,)
    # to deal examples out to members
    cdef Py_ssize_t most              # examples of a mini-batch
    cdef Py_ssize_t *ends             # (n_classes + 1,) of the examples of each class
    cdef int *labels_of_all           # (batch,) the class of each example
    cdef Py_ssize_t *sorted           # (batch,) examples by class
    cdef Py_ssize_t[::1] largest_first  # (n_classes,) classes by number of words
    cdef Py_ssize_t[MAX_MEMBERS] taken  # examples of each member
    cdef Py_ssize_t[MAX_MEMBERS] rows_of_member
    cdef void group(self, Py_ssize_t K) noexcept nogil
    cdef double within(
        self, int word, void *z, char *p, double *total) noexcept nogil
    cdef void spread(self, Py_ssize_t K, char *logits) noexcept nogil

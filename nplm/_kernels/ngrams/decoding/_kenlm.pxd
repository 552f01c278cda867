cdef class Steps:
    cdef object step_to(self, object own, object word, double* log_prob, int* order)

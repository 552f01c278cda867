"""Training and scoring of the network: section 3.2's algorithm over many examples.

Serial training is one shard that holds every output row.
"""

from cython cimport floating
from libc.math cimport exp, log, log1p
from libc.string cimport memcpy

from nplm._kernels._elementwise cimport exp_row
from nplm._kernels._hidden cimport Hidden, hidden_backward, hidden_forward
from nplm._kernels._output cimport output_backward, output_forward
from nplm._kernels._workspace cimport Workspace


cdef inline void gather(
    const int[:, :] X, const int[:] y, const Py_ssize_t[::1] index,
    Py_ssize_t start, Py_ssize_t K, int *contexts, int *target,
) noexcept nogil:
    """Contexts, nearest word first, and targets of K examples."""
    cdef Py_ssize_t n = X.shape[1], i, k, row
    for k in range(K):
        row = index[start + k]
        target[k] = y[row]
        for i in range(n):
            contexts[k * n + i] = X[row, n - 1 - i]


cdef Hidden sizes(
    floating[:, ::1] C, floating[:, ::1] H, Py_ssize_t n_context, bint direct,
) noexcept nogil:
    cdef Hidden size
    size.n_context = n_context
    size.n_features = C.shape[1]
    size.n_hidden = H.shape[0]
    size.direct = direct
    return size


cdef Py_ssize_t outputs(Hidden size) noexcept nogil:
    """Parameters of an output unit: the length of z = [a | x | 1]."""
    return size.n_hidden + size.direct * size.n_context * size.n_features + 1


def train(
    Workspace work, floating[:, ::1] C, floating[:, ::1] H, floating[::1] d,
    floating[:, ::1] E, const int[:, :] X, const int[:] y,
    const Py_ssize_t[::1] index, int[:, ::1] contexts, *, bint direct, double learning_rate_init,
    double learning_rate_decay, double alpha, double[::1] C_clock, double[::1] tally,
):
    """Stochastic gradient ascent over the examples ``index``, in mini-batches.

    Each mini-batch of K = ``work.batch_size`` examples changes the parameters by
    the rate times the sum of their gradients, less the weight decay.
    ``tally`` goes in and comes out as [summed negative log-likelihood of each
    example just before its update, examples seen in the fit, logarithm of the
    weight decay so far]; ``C_clock[j]`` is where that logarithm stood when row
    j of C was last brought up to date: the decay of C is lazy, for the
    features of most words are not in a window.

    Equivalent to ``reference.train``.
    """
    cdef Py_ssize_t n = len(index), n_context = X.shape[1], start = 0
    cdef Py_ssize_t K, k, i, j
    cdef Hidden size = sizes(C, H, n_context, direct)
    cdef Py_ssize_t n_outputs = outputs(size)
    cdef int *context = &contexts[0, 0]
    cdef double rate, decay, nll, clock, faded
    cdef floating keep
    cdef int word
    cdef floating *h_data = &H[0, 0] if size.n_hidden else NULL
    cdef floating *d_data = &d[0] if size.n_hidden else NULL
    with nogil:
        while start < n:
            K = min(work.batch_size, n - start)
            gather(X, y, index, start, K, context, work.target)
            rate = learning_rate_init / (1 + learning_rate_decay * tally[1])
            decay = rate * alpha * K
            clock = tally[2]
            if alpha != 0:
                for i in range(K * n_context):
                    word = context[i]
                    if C_clock[word] != clock:
                        faded = exp(clock - C_clock[word])
                        for j in range(size.n_features):
                            C[word, j] = <floating>(C[word, j] * faded)
                        C_clock[word] = clock

            hidden_forward(size, &C[0, 0], h_data, d_data, context, K, work)
            output_forward(&E[0, 0], E.shape[0], n_outputs, work.target, K, work, True)
            nll = 0
            for k in range(K):
                nll += work.total_max[k] + log(work.total_sum[k]) - work.target_logit[k]
            output_backward(&E[0, 0], E.shape[0], n_outputs, work.target, K, work,
                            <floating>rate, <floating>decay)
            keep = <floating>(1 - decay)
            # The decay still due to the rows of C falls on this gradient too.
            hidden_backward(size, &C[0, 0], h_data, d_data, context, K, work,
                            <floating>rate, keep, <floating>(rate / (1 - decay)))
            tally[0] += nll
            tally[1] += K
            tally[2] += log1p(-decay)
            start += K


def log_prob(
    Workspace work, floating[:, ::1] C, floating[:, ::1] H, floating[::1] d,
    floating[:, ::1] E, const int[:, :] X, const int[:] y,
    const Py_ssize_t[::1] index, int[:, ::1] contexts, double[::1] out, *, bint direct,
):
    """out[i] = log P(y[index[i]] | X[index[i]]), natural logarithm.

    Equivalent to ``reference.log_prob``.
    """
    cdef Py_ssize_t n = len(index), n_context = X.shape[1], start = 0
    cdef Py_ssize_t K, k
    cdef Hidden size = sizes(C, H, n_context, direct)
    cdef floating *h_data = &H[0, 0] if size.n_hidden else NULL
    cdef floating *d_data = &d[0] if size.n_hidden else NULL
    with nogil:
        while start < n:
            K = min(work.batch_size, n - start)
            gather(X, y, index, start, K, &contexts[0, 0], work.target)
            hidden_forward(size, &C[0, 0], h_data, d_data, &contexts[0, 0], K, work)
            output_forward(&E[0, 0], E.shape[0], outputs(size), work.target, K, work,
                           False)
            for k in range(K):
                out[start + k] = (
                    work.target_logit[k] - work.total_max[k] - log(work.total_sum[k])
                )
            start += K


def softmax_rows(floating[:, ::1] logits, *, bint logarithm):
    """Turn rows of logits into probabilities, or their logarithms, in place.

    Equivalent to ``scipy.special.softmax(logits, axis=1)`` or ``log_softmax``.
    """
    cdef Py_ssize_t n = logits.shape[0], n_words = logits.shape[1], i, j
    cdef floating high, shift
    cdef double total
    with nogil:
        for i in range(n):
            if logarithm:
                high = logits[i, 0]
                for j in range(n_words):
                    high = max(high, logits[i, j])
                total = 0
                for j in range(n_words):
                    total += exp(logits[i, j] - high)
                shift = <floating>(high + log(total))
                for j in range(n_words):
                    logits[i, j] -= shift
                continue
            total = exp_row(&logits[i, 0], n_words, &high)
            shift = <floating>(1 / total)
            for j in range(n_words):
                logits[i, j] *= shift

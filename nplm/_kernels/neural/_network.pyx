"""Training and scoring of the network: section 3.2's algorithm over many examples.

Serial training is a team of one, whose block is every output unit. Threads that
train asynchronously are teams of one that share the parameters.
"""

from cython cimport floating
from libc.math cimport exp, log, log1p

from nplm._kernels.neural._elementwise cimport exp_row
from nplm._kernels.neural._hidden cimport Hidden, hidden_backward, hidden_forward
from nplm._kernels.neural._output cimport output_backward, output_forward
from nplm._kernels.neural._team cimport (
    Team, add_gradients, atomic_add, atomic_read, barrier_broken, barrier_wait,
    combine_softmax, lock_acquire, lock_release, publish_totals,
)
from nplm._kernels.neural._workspace cimport Workspace


ctypedef fused number:
    int
    float
    double


cdef inline number *data(number[:, ::1] matrix) noexcept nogil:
    """Where a matrix begins; one that is empty, as contexts of no words, nowhere."""
    return &matrix[0, 0] if matrix.shape[0] and matrix.shape[1] else NULL


cdef inline void gather(
    const int[:, :] X, const int[:] y, const Py_ssize_t[::1] index,
    Py_ssize_t start, Py_ssize_t K, int *contexts, int *word,
) noexcept nogil:
    """Contexts, nearest word first, and targets of K examples."""
    cdef Py_ssize_t n = X.shape[1], i, k, row
    for k in range(K):
        row = index[start + k]
        word[k] = y[row]
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


# The phases of a mini-batch. Between them members share their totals and their
# gradients: threads at a barrier, processes by a backend that runs them singly.
cpdef enum:
    FORWARD = 1
    BACKWARD = 2
    UPDATE = 4
    ALL = 7


def train(
    Team team, int member, floating[:, ::1] C, floating[:, ::1] H, floating[::1] d,
    floating[:, ::1] E, const int[:, :] X, const int[:] y,
    const Py_ssize_t[::1] index, int[:, ::1] contexts, *, bint direct,
    double learning_rate_init, double learning_rate_decay, double alpha,
    double[::1] C_clock, double[::1] loss, double[::1] clock, int phases=ALL,
):
    """Stochastic gradient ascent over the examples ``index``, in mini-batches.

    Each mini-batch of K = ``team.batch_size`` examples changes the parameters by
    the rate times the sum of their gradients, less the weight decay. Every
    thread of the team must call this at once: each has a block of the output
    units, the rows of ``E`` that start at its own, and the first does the rest.
    With fewer ``phases``, ``index`` is one mini-batch, phase by phase. A team that
    gives up stops between mini-batches.

    ``loss[0]`` grows by the negative log-likelihood of each example just before
    its update. ``clock`` is shared by all threads that train the parameters:
    [examples seen in the fit, logarithm of the weight decay so far].
    ``C_clock[j]`` is where that logarithm stood when row j of C was last brought
    up to date: the decay of C is lazy, for the features of most words are not
    in a window.

    Equivalent to ``reference.train``.
    """
    cdef Workspace work = team.workspaces[member - team.here]
    cdef Workspace leader = team.workspaces[0]
    cdef bint leads = member == team.here
    cdef Py_ssize_t n = len(index), n_context = X.shape[1], start = 0, K, k
    cdef Hidden size = sizes(C, H, n_context, direct)
    cdef Py_ssize_t n_outputs = outputs(size)
    cdef Py_ssize_t first = team.first[member]
    cdef Py_ssize_t n_rows = team.first[member + 1] - first
    cdef floating *rows = data(E) + (first - team.first[team.here]) * E.shape[1]
    cdef int *context = data(contexts)
    cdef double rate, decay
    cdef floating *h_data = data(H)
    cdef floating *d_data = &d[0] if size.n_hidden else NULL
    with nogil:
        while start < n and not barrier_broken(&team.barrier):
            K = min(work.batch_size, n - start)
            if phases & FORWARD:
                if leads:
                    gather(X, y, index, start, K, context, leader.word)
                    if alpha != 0:
                        settle(C, C_clock, atomic_read(&clock[1]), context,
                               K * n_context)
                    hidden_forward(size, data(C), h_data, d_data, context, K, leader)
                if barrier_wait(&team.barrier):
                    break
                for k in range(K):
                    work.target[k] = leader.word[k] - <int>first
                output_forward(rows, n_rows, n_outputs, work.target, K, work,
                               <floating *>NULL)
                publish_totals(team, work)
            if barrier_wait(&team.barrier):
                break
            # Of the examples seen before this mini-batch: the leader adds it later.
            rate = learning_rate_init / (
                1 + learning_rate_decay * atomic_read(&clock[0]))
            decay = rate * alpha * K
            if phases & BACKWARD:
                combine_softmax(team, K, work)
                lock_acquire(team.lock)
                output_backward(rows, n_rows, n_outputs, work.target, K, work,
                                <floating>rate, <floating>decay)
            if barrier_wait(&team.barrier):
                break
            if phases & UPDATE and leads:
                add_gradients(team, n_outputs * work.n_columns, <floating *>work.dzt)
                # The decay still due to the rows of C falls on this gradient too.
                hidden_backward(size, data(C), h_data, d_data, context, K, leader,
                                <floating>rate, <floating>(1 - decay),
                                <floating>(rate / (1 - decay)))
                lock_release(team.lock)
                loss[0] += negative_log_likelihood(team, K, work)
                atomic_add(&clock[0], K)
                atomic_add(&clock[1], log1p(-decay))
            start += K


cdef void settle(
    floating[:, ::1] C, double[::1] C_clock, double clock, const int *words, Py_ssize_t n
) noexcept nogil:
    """Bring the rows of C of these words up to date with the weight decay."""
    cdef Py_ssize_t i, j
    cdef int word
    cdef double faded
    for i in range(n):
        word = words[i]
        if C_clock[word] != clock:
            faded = exp(clock - C_clock[word])
            for j in range(C.shape[1]):
                C[word, j] = <floating>(C[word, j] * faded)
            C_clock[word] = clock


cdef double negative_log_likelihood(Team team, Py_ssize_t K, Workspace work) noexcept nogil:
    cdef double total = 0, logit
    cdef Py_ssize_t k
    cdef int i
    for k in range(K):
        logit = team.target_logit[0][k]  # -inf for all but the target's member
        for i in range(1, team.n_totals):
            logit = max(logit, team.target_logit[i][k])
        total += work.softmax_max[k] + log(work.softmax_sum[k]) - logit
    return total


def score(
    Workspace work, floating[:, ::1] C, floating[:, ::1] H, floating[::1] d,
    floating[:, ::1] E, const int[:, :] X, const int[:] y,
    const Py_ssize_t[::1] index, int[:, ::1] contexts, double[:, :] totals, *,
    Py_ssize_t first, bint direct,
):
    """Fill ``totals[:, i]`` for the window ``index[i]`` and the output rows of E.

    The maximum of their logits, the sum of their exponentials relative to it,
    and the logit of the next word, -inf if it is not among these rows, which
    start at word ``first``. With all rows,
    ``log P = totals[2] - totals[0] - log(totals[1])``.

    Equivalent to ``reference.score``.
    """
    cdef Py_ssize_t n = len(index), n_context = X.shape[1], start = 0
    cdef Py_ssize_t K, k
    cdef Hidden size = sizes(C, H, n_context, direct)
    cdef floating *h_data = data(H)
    cdef floating *d_data = &d[0] if size.n_hidden else NULL
    with nogil:
        while start < n:
            K = min(work.batch_size, n - start)
            gather(X, y, index, start, K, data(contexts), work.word)
            for k in range(K):
                work.target[k] = work.word[k] - <int>first
            hidden_forward(size, data(C), h_data, d_data, data(contexts), K, work)
            output_forward(data(E), E.shape[0], outputs(size), work.target, K, work,
                           <floating *>NULL)
            for k in range(K):
                totals[0, start + k] = work.total_max[k]
                totals[1, start + k] = work.total_sum[k]
                totals[2, start + k] = work.target_logit[k]
            start += K


def probabilities(
    Workspace work, floating[:, ::1] C, floating[:, ::1] H, floating[::1] d,
    floating[:, ::1] E, const int[:, :] X, const Py_ssize_t[::1] index,
    int[:, ::1] contexts, floating[:, ::1] out, *, bint direct, bint logarithm,
):
    """Fill ``out[i]`` with the probabilities of all words after window ``index[i]``.

    Or with their natural logarithms. Equivalent to ``reference.probabilities``.
    """
    cdef Py_ssize_t n = len(index), n_context = X.shape[1], start = 0, n_words = len(E)
    cdef Py_ssize_t K, i, j, k
    cdef Hidden size = sizes(C, H, n_context, direct)
    cdef floating *h_data = data(H)
    cdef floating *d_data = &d[0] if size.n_hidden else NULL
    cdef floating *row
    cdef floating shift, high
    with nogil:
        for k in range(work.batch_size):
            work.target[k] = -1
        while start < n:
            K = min(work.batch_size, n - start)
            for k in range(K):
                for i in range(n_context):
                    contexts[k, i] = X[index[start + k], n_context - 1 - i]
            hidden_forward(size, data(C), h_data, d_data, data(contexts), K, work)
            output_forward(data(E), n_words, outputs(size), work.target, K, work,
                           &out[start, 0])
            for k in range(K):
                row = &out[start + k, 0]
                if logarithm:
                    shift = <floating>(work.total_max[k] + log(work.total_sum[k]))
                    for j in range(n_words):
                        row[j] -= shift
                    continue
                if floating is float and work.loops != NULL:
                    shift = <floating>(1 / work.loops.exp_row(row, n_words, &high))
                else:
                    shift = <floating>(1 / exp_row(row, n_words, &high))
                for j in range(n_words):
                    row[j] *= shift
            start += K

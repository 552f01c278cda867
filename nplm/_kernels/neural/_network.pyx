"""Train and score a network, by the algorithm of section 3.2 over many examples.

The parts of the network (inputs, hidden units, output, solver) are objects, which the
loops here call. Serial training is a team of one member, which has all output units.
Threads that train asynchronously are teams of one that share the parameters.
"""

from libc.math cimport log
from libc.string cimport memcpy

from nplm._kernels._ids cimport id_below
from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._solvers cimport Solver, Step, lock_acquire, lock_release
from nplm._kernels.neural._team cimport Team, barrier_broken, barrier_wait
from nplm._kernels.neural.outputs._output cimport Output


cdef void take_windows(
    Team team, Activations at, const int[:, :] X, const int[:] y,
    const Py_ssize_t[::1] index, Py_ssize_t start, Py_ssize_t K,
) noexcept nogil:
    """Copy the contexts, nearest word first, and any next words of K examples.

    They are at ``at.places`` of a mini-batch that starts at `start`. A context is the
    nearest columns of a window. Where a state goes on from one to the next, equal ones
    are one, and ``at.follows`` says whether a window is that of the row before, one word
    later.

    The network reads these copies. (`Classes.arrange` reads ids of its own.)
    """
    cdef Py_ssize_t n = at.n_context, n_columns = X.shape[1], i, k, row
    cdef bint remembers = at.n_columns > n
    cdef int *context = at.contexts
    cdef int n_words = <int>team.inputs.features.C.rows, n_outcomes = team.n_outcomes
    if remembers:
        at.distinct.clear()
    at.n_distinct[0] = 0
    for k in range(K):
        row = index[start + at.places[k]]
        at.words[k] = id_below(&y[row], n_outcomes) if y is not None else -1
        for i in range(n):
            context[i] = id_below(&X[row, n_columns - 1 - i], n_words)
        at.of[k] = at.distinct.number(context, 0) if remembers else k
        if at.of[k] == at.n_distinct[0]:  # else the next one takes its place
            at.n_distinct[0] += 1
            context += n
        if remembers:
            at.rows[k] = row
            at.follows[k] = row > 0 and (
                y is None or y[row - 1] == X[row, n_columns - 1])
            # Windows of a stream are views of it: their words are the same memory.
            i = n_columns if X.strides[0] == X.strides[1] else 1
            while at.follows[k] and i < n_columns:
                at.follows[k] = X[row - 1, i] == X[row, i - 1]
                i += 1


# The phases of a mini-batch. Between them, members share totals and gradients: threads
# at a barrier, processes through a backend that calls each phase.
cpdef enum:
    FORWARD = 1
    BACKWARD = 2
    UPDATE = 4
    ALL = 7


def check_windows(Team team, const int[:, :] X, const Py_ssize_t[::1] index):
    """Raise an error unless the windows have the width of the network's contexts.

    Where a state goes on, they may be wider. No twin: NumPy looks for itself.
    """
    cdef Activations at = team.at
    if X.shape[1] != at.n_context and not at.n_columns > at.n_context <= X.shape[1]:
        raise ValueError(
            f"windows of {X.shape[1]} words for a network that sees {at.n_context}")


def train(
    Team team, int member, const int[:, :] X, const int[:] y,
    const Py_ssize_t[::1] index, *, int phases=ALL,
):
    """Stochastic gradient ascent over the examples ``index``, in mini-batches.

    Each mini-batch of at most ``team.batch_size`` examples updates the parameters
    from the sum of their gradients. All threads of the team must call this
    concurrently: each has a block of the output units, and the first does the rest.
    With fewer ``phases``, ``index`` is one mini-batch, phase by phase. A team that
    gives up stops between mini-batches.

    ``team.loss`` grows by the negative log-likelihood of each example just before
    its update.

    Equivalent to ``reference.neural.train``.
    """
    cdef Output output = team.outputs[member - team.here]
    cdef Output first = team.outputs[0]
    cdef Solver solver = team.solver
    cdef Activations at = team.at
    cdef bint leads = member == team.here
    cdef Py_ssize_t n = len(index), start = 0, K
    cdef Step step
    check_windows(team, X, index)
    with nogil:
        while start < n and not barrier_broken(&team.barrier):
            K = min(at.batch_size, n - start)
            if phases & FORWARD:
                if leads:
                    take_windows(team, at, X, y, index, start, K)
                    team.inputs.visit(at, at.n_distinct[0], solver)
                    team.inputs.forward(at, at.n_distinct[0])
                    team.hidden.forward(at, K)
                    first.begin(K)
                if barrier_wait(&team.barrier):
                    break
                output.forward(K, NULL)
                team.publish(output)
            if barrier_wait(&team.barrier):
                break
            # The clock before this mini-batch: the leader advances it later.
            step = solver.step(K)
            if phases & BACKWARD:
                output.combine(team.totals, team.n_totals, K)
                lock_acquire(team.lock)
                output.backward(K, solver, &step)
            if barrier_wait(&team.barrier):
                break
            if phases & UPDATE and leads:
                team.add_slopes()
                first.end(K, solver, &step)
                team.hidden.backward(at, K, solver, &step)
                team.inputs.backward(at, at.n_distinct[0], solver, &step)
                first.follow(solver, &step)
                team.inputs.features.end(solver, &step)
                lock_release(team.lock)
                team.loss += first.loss(team.totals, team.n_totals, K)
                first.adapt(first.noise(), K)
                solver.advance(&step)
            start += K


def score(
    Team team, const int[:, :] X, const int[:] y, const Py_ssize_t[::1] index,
    double[:, :] totals,
):
    """Fill ``totals[:, i]`` for the window ``index[i]`` and the words of the team.

    The totals are the maximum of the logits, the sum of their exponentials relative
    to it, and the logit of the next word, -inf if it is not one of these words. With
    all words, ``log P = totals[2] - totals[0] - log(totals[1])``.

    Equivalent to ``reference.neural.score``.
    """
    cdef Output output = team.outputs[0]
    cdef Activations at = team.at
    cdef Py_ssize_t n = len(index), start = 0, K, k
    check_windows(team, X, index)
    with nogil:
        while start < n:
            K = min(at.batch_size, n - start)
            take_windows(team, at, X, y, index, start, K)
            team.inputs.forward(at, at.n_distinct[0])
            team.hidden.forward(at, K)
            output.begin(K)
            output.forward(K, NULL)
            for k in range(K):
                totals[0, start + k] = output.own.high[k]
                totals[1, start + k] = output.own.sum[k]
                totals[2, start + k] = output.own.target[k]
            start += K


def probabilities(
    Team team, const int[:, :] X, const Py_ssize_t[::1] index,
    unsigned char[:, ::1] out, *, bint logarithm,
):
    """Fill ``out[i]`` with the probabilities of all words after window ``index[i]``.

    Or with their natural logarithms. `out` is the memory of an array of the
    network's type, (len(index), n_words).

    Equivalent to ``reference.neural.probabilities``.
    """
    cdef Output output = team.outputs[0]
    cdef Activations at = team.at
    cdef Py_ssize_t n = len(index), n_words = output.n_words, start = 0, K, k
    cdef void *row
    cdef double high
    check_windows(team, X, index)
    if out.shape[1] != n_words * at.itemsize or out.shape[0] != n:
        raise ValueError(f"no room for {n} rows of {n_words} probabilities")
    with nogil:
        while start < n:
            K = min(at.batch_size, n - start)
            take_windows(team, at, X, None, index, start, K)
            team.inputs.forward(at, at.n_distinct[0])
            team.hidden.forward(at, K)
            output.begin(K)
            output.forward(K, &out[start, 0])
            for k in range(K):
                row = &out[start + k, 0]
                if logarithm:
                    team.loops.subtract(
                        row, n_words, output.own.high[k] + log(output.own.sum[k]))
                else:
                    team.loops.scale(
                        row, n_words, 1 / team.loops.exp_row(row, n_words, &high))
            start += K


def hidden(
    Team team, const int[:, :] X, const Py_ssize_t[::1] index,
    unsigned char[:, ::1] out,
):
    """Fill ``out[i]`` with the hidden activations after window ``index[i]``.

    `out` is the memory of an array of the network's type, (len(index), n_hidden). With
    tied outputs the activations are the projected ones.

    Equivalent to ``reference.neural.hidden``.
    """
    cdef Activations at = team.at
    cdef Py_ssize_t n = len(index), size = at.n_hidden * at.itemsize, start = 0, K
    check_windows(team, X, index)
    if out.shape[1] != size or out.shape[0] != n or size == 0:
        raise ValueError(f"no room for {n} rows of {at.n_hidden} activations")
    with nogil:
        while start < n:
            K = min(at.batch_size, n - start)
            take_windows(team, at, X, None, index, start, K)
            team.inputs.forward(at, at.n_distinct[0])
            team.hidden.forward(at, K)
            memcpy(&out[start, 0], at.a, K * size)
            start += K


def candidates(
    Team team, const int[:, :] X, const Py_ssize_t[::1] index, const int[:, :] words,
    double[:, ::1] out, *, bint normalize,
):
    """Fill ``out[i]`` with log-probabilities of ``words[i]`` after window ``index[i]``.

    Without `normalize` with their logits, at a cost that does not depend on the size
    of the vocabulary: the output rows of other words are not read.

    Equivalent to ``reference.neural.candidates``.
    """
    cdef Output output = team.outputs[0]
    cdef Activations at = team.at
    cdef Py_ssize_t n = len(index), start = 0, K, j, k
    cdef double total
    cdef int word
    check_windows(team, X, index)
    if output.first != 0 or output.n_words != team.n_outcomes:
        raise ValueError(f"{output.n_words} of {team.n_outcomes} words are here")
    if words.shape[0] != n or out.shape[0] != n or out.shape[1] != words.shape[1]:
        raise ValueError(f"no room for {words.shape[1]} candidates of {n} windows")
    with nogil:
        while start < n:
            K = min(at.batch_size, n - start)
            take_windows(team, at, X, None, index, start, K)
            team.inputs.forward(at, at.n_distinct[0])
            team.hidden.forward(at, K)
            output.begin(K)
            if normalize:
                output.forward(K, NULL)
            for k in range(K):
                total = output.own.high[k] + log(output.own.sum[k]) if normalize else 0
                for j in range(words.shape[1]):
                    word = id_below(&words[start + k, j], team.n_outcomes)
                    out[start + k, j] = output.logit(k, word) - total
            start += K

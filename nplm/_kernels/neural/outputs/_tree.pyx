"""Hierarchical softmax over a tree of words (section 5.2).

An inner node is a softmax over its branches, and the probability of a word is the
product of the choices on its path (Morin and Bengio, 2005). Training and scoring visit
the nodes above a word. Each branch has a row of E: without one for the last branch,
whose logit could be 0, a network with 16 branches has a perplexity 2% higher.
"""

from libc.math cimport INFINITY, log
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Scratch, Tier
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step
from nplm._kernels.neural.outputs._output cimport Rows, number, put

cdef enum:
    ABREAST = 16  # examples that descend the tree together


cdef class Tree(Rows):
    """Words as the leaves of a tree; row i of E is branch i.

    Equivalent to ``reference.neural.Tree``.

    Parameters
    ----------
    tier, scratch, at : Tier, Scratch, Activations
        See `Output`.
    E : Parameter
        Branches of the inner nodes, node by node from the root.
    branches : ndarray of int32, shape (n_words + n_nodes - 1,)
        The child of each branch: a word below ``n_words``, or ``n_words`` plus a node.
        Parents come before their children.
    starts : ndarray of int64, shape (n_nodes + 1,)
        Start of each node's branches.
    parents, places : ndarray of int32, shape (n_words + n_nodes,)
        The parent of each word and each node, and which of its children it is. Those of
        the root are unused.
    depth, most_rows : int
        Maximum number of inner nodes above a word, and of their branches.
    solver : Solver or None
        Solver that updates the parameters.
    **options
        Options of `Rows`.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, Parameter E, *,
        const int[::1] branches, const int64_t[::1] starts, const int[::1] parents,
        const int[::1] places, Py_ssize_t depth, Py_ssize_t most_rows,
        Py_ssize_t n_words, Solver solver, **options,
    ):
        cdef Py_ssize_t n = len(branches), K = at.batch_size, paths, most, node
        self.n_nodes = len(starts) - 1
        if (
            not E.rows == n == n_words + self.n_nodes - 1
            or len(parents) != n + 1 or len(places) != n + 1
        ):
            raise ValueError(f"no tree of {n_words} words: {E.rows} rows of E")
        self.solver = solver
        self.branches, self.starts = branches, starts
        self.parents, self.places = parents, places
        self.root = <int>(n_words if n else 0)
        # Scoring handles one path at a time.
        paths = 1 if at.scoring else K
        self.path = <int *>scratch.bytes(max(1, depth * paths) * sizeof(int))
        self.taken = <int *>scratch.bytes(max(1, depth * paths) * sizeof(int))
        self.logits = scratch.numbers(max(1, most_rows * paths))
        if at.scoring:
            # Memory that is not written to is not resident: only `descend` uses it.
            self.zt16 = scratch.numbers(self.stride * ABREAST)
            self.inner = scratch.numbers(n * ABREAST)
            self.log_p = scratch.numbers((n + 1) * ABREAST)
            return
        most = max(1, min(most_rows * paths, n))
        self.starts_here = <Py_ssize_t *>scratch.bytes((K + 1) * sizeof(Py_ssize_t))
        self.rows_here = <Py_ssize_t *>scratch.bytes(K * sizeof(Py_ssize_t))
        self.slots = <int *>scratch.bytes(max(1, depth * K) * sizeof(int))
        self.met = <int *>scratch.bytes(most * sizeof(int))
        self.gradients = scratch.numbers(most * self.stride)
        self.slot_of = <int *>scratch.bytes(max(1, self.n_nodes) * sizeof(int))
        for node in range(self.n_nodes):
            self.slot_of[node] = -1

    cdef inline Py_ssize_t width(self, int node) noexcept nogil:
        """Return the number of branches of a node."""
        return self.starts[node + 1] - self.starts[node]

    cdef Py_ssize_t climb(self, int word, int *path, int *taken) noexcept nogil:
        """Write the nodes above a word and the branches to it; return their number."""
        cdef int below = word
        cdef Py_ssize_t n = 0
        while below != self.root:
            path[n] = self.parents[below]
            taken[n] = self.places[below]
            below = <int>self.n_words + path[n]
            n += 1
        return n

    cdef double walk(
        self, Py_ssize_t k, const int *path, const int *taken, Py_ssize_t n,
        char *logits,
    ) noexcept nogil:
        """Compute log P of a word of example k, and the slopes of the logits."""
        cdef Py_ssize_t size = self.itemsize, i, rows
        cdef char *z = <char *>self.z + k * self.stride * size
        cdef double total = 0, own, sum, high
        for i in range(n):
            rows = self.width(path[i])
            self.loops.row_dots(
                self.row_of(self.starts[path[i]]), rows, self.stride, self.stride, z, 0,
                logits)
            own = number(logits, taken[i], size)
            sum = self.loops.exp_row(logits, rows, &high)
            total += own - high - log(sum)
            if not self.at.scoring:
                self.loops.scale(logits, rows, -1 / sum)
                put(logits, taken[i], size, number(logits, taken[i], size) + 1)
                logits += rows * size
        return total

    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil:
        """Compute log P of the words of K examples.

        Equivalent to, with the logits ``y = z @ E.T``::

            target[k] = sum(log_softmax(y[k, rows of node])[branch] for node in path)

        In training the slopes, ``(branch == row) - softmax(y[k, rows of node])``, are
        kept.
        """
        cdef Py_ssize_t size = self.itemsize, k, i, j, n, start = 0, n_rows = 0
        cdef int node
        for k in range(K):
            self.own.high[k], self.own.sum[k] = 0, 1
            self.own.target[k] = -INFINITY
        if self.at.scoring:
            for k in range(K):
                if self.at.words[k] >= 0:
                    n = self.climb(self.at.words[k], self.path, self.taken)
                    self.own.target[k] = self.walk(
                        k, self.path, self.taken, n, <char *>self.logits)
            if logits != NULL:
                self.descend(K, <char *>logits)
            return
        self.n_met = 0
        for k in range(K):
            self.starts_here[k], self.rows_here[k] = start, n_rows
            start += self.climb(self.at.words[k], self.path + start, self.taken + start)
            for i in range(self.starts_here[k], start):
                n_rows += self.width(self.path[i])
        self.starts_here[K] = start
        for i in range(start):
            node = self.path[i]
            if self.slot_of[node] < 0:
                self.slot_of[node] = <int>self.n_met
                for j in range(self.width(node)):
                    self.met[self.n_met] = <int>(self.starts[node] + j)
                    self.n_met += 1
            self.slots[i] = self.slot_of[node]
        for i in range(start):
            self.slot_of[self.path[i]] = -1
        self.solver.visit(self.E, self.met, self.n_met)
        for k in range(K):
            start = self.starts_here[k]
            self.own.target[k] = self.walk(
                k, self.path + start, self.taken + start,
                self.starts_here[k + 1] - start,
                <char *>self.logits + self.rows_here[k] * size)

    cdef void descend(self, Py_ssize_t K, char *log_p) noexcept nogil:
        """Compute log P of all words, (K, n_words), and each node once."""
        cdef Py_ssize_t size = self.itemsize, n_words = self.n_words
        cdef Py_ssize_t block, k, n
        memset(<char *>self.log_p + self.root * ABREAST * size, 0, ABREAST * size)
        for block in range((K + ABREAST - 1) // ABREAST):
            k = block * ABREAST
            n = min(ABREAST, K - k)
            memset(self.zt16, 0, self.stride * ABREAST * size)
            self.loops.transpose(
                <char *>self.z + k * self.stride * size, self.stride, n, self.n_outputs,
                self.zt16, ABREAST)
            if self.n_rows > 0:
                self.loops.forward_tile(
                    self.E.values, self.n_rows, self.stride, self.n_outputs, self.zt16,
                    ABREAST, self.inner)
                self.loops.descend(
                    &self.branches[0], &self.starts[0], self.n_nodes, n_words, self.inner,
                    ABREAST, self.log_p)
            self.loops.transpose(
                self.log_p, ABREAST, n_words, n, log_p + k * n_words * size, n_words)

    cdef void backward(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Compute the gradient of the log-likelihood for z, and update visited nodes.

        Equivalent to, with the slopes g, 0 off the paths, and the old E on the right::

            dz = g @ E
            E[:] = E + rate * g.T @ z - decay * E (but for the bias)
        """
        cdef Py_ssize_t size = self.itemsize, width = self.stride * self.itemsize
        cdef Py_ssize_t k, i, rows
        cdef char *g = <char *>self.logits
        memset(self.slopes, 0, K * width)
        memset(self.gradients, 0, self.n_met * width)
        for k in range(K):
            for i in range(self.starts_here[k], self.starts_here[k + 1]):
                rows = self.width(self.path[i])
                self.loops.branch_gradients(
                    self.row_of(self.starts[self.path[i]]), rows, self.stride, g,
                    <char *>self.z + k * width,
                    <char *>self.gradients + self.slots[i] * width,
                    <char *>self.slopes + k * width)
                g += rows * size
        solver.scattered(step, self.E, self.met, self.n_met, 0, self.gradients)

    cdef void end(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Compute dL/da and dL/dx; dL/dz has a row per example here."""
        cdef Py_ssize_t h = self.at.n_hidden, size = self.itemsize, k
        cdef char *dz
        memset(self.at.dx, 0, K * self.at.n_inputs * size)
        for k in range(K):
            dz = <char *>self.slopes + k * self.stride * size
            memcpy(<char *>self.at.da + k * h * size, dz, h * size)
            if self.direct:
                self.at.add_to_dx(k, dz + h * size)

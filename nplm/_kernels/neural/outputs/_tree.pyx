"""Hierarchical softmax over a binary tree of words (section 5.2).

An inner node is a logistic unit that chooses one of its two branches, and the
probability of a word is the product of the choices on its path (Morin and Bengio,
2005). Training and scoring visit the nodes above a word; in a Huffman tree, their mean
number is about the entropy of the unigrams in bits.
"""

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset

from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Scratch, Tier
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step
from nplm._kernels.neural.outputs._output cimport Rows

cdef enum:
    ABREAST = 16  # examples that descend the tree together


cdef class Tree(Rows):
    """Words as the leaves of a binary tree; row i of E is inner node i.

    Equivalent to ``reference.neural.Tree``.

    Parameters
    ----------
    tier, scratch, at : Tier, Scratch, Activations
        See `Output`.
    E : Parameter
        Inner nodes, the root first.
    children : ndarray of int32, shape (n_words - 1, 2)
        Children of each inner node: a word below ``n_words``, or ``n_words`` plus a
        row. Parents come before their children.
    parents : ndarray of int32, shape (2 n_words - 1,)
        Parents of words, then of inner nodes: row i for a first child, ~i for a second.
        That of the root is unused.
    depth : int
        Maximum number of inner nodes above a word.
    solver : Solver or None
        Solver that updates the parameters.
    **options
        Options of `Rows`.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, Parameter E, *,
        const int[:, ::1] children, const int[::1] parents, Py_ssize_t depth,
        Py_ssize_t n_words, Solver solver, **options,
    ):
        cdef Py_ssize_t n_inner = n_words - 1, K = at.batch_size, n_paths, most, i
        if E.rows != n_inner or len(children) != n_inner or len(parents) != n_words + n_inner:
            raise ValueError(f"no tree of {n_words} words: {E.rows} rows of E")
        self.solver, self.children, self.parents = solver, children, parents
        self.root = <int>(n_words if n_inner else 0)
        # Scoring handles one path at a time.
        n_paths = max(1, depth * (1 if at.scoring else K))
        self.path = <int *>scratch.bytes(n_paths * sizeof(int))
        self.margins = scratch.numbers(n_paths)
        self.shares = scratch.numbers(n_paths)
        if at.scoring:
            # Memory that is not written to is not resident: only `descend` uses it.
            self.zt16 = scratch.numbers(self.stride * ABREAST)
            self.inner = scratch.numbers(n_inner * ABREAST)
            self.log_p = scratch.numbers((n_words + n_inner) * ABREAST)
            return
        most = max(1, min(n_paths, n_inner))
        self.starts = <Py_ssize_t *>scratch.bytes((K + 1) * sizeof(Py_ssize_t))
        self.slots = <int *>scratch.bytes(n_paths * sizeof(int))
        self.met = <int *>scratch.bytes(most * sizeof(int))
        self.gradients = scratch.numbers(most * self.stride)
        self.slot_of = <int *>scratch.bytes(n_inner * sizeof(int))
        for i in range(n_inner):
            self.slot_of[i] = -1

    cdef Py_ssize_t climb(self, int word, int *path) noexcept nogil:
        """Write the nodes above a word, up to the root, and return their number."""
        cdef int node = word, code
        cdef Py_ssize_t n = 0
        while node != self.root:
            code = self.parents[node]
            path[n] = code
            n += 1
            node = <int>self.n_words + (code if code >= 0 else ~code)
        return n

    cdef double walk(self, Py_ssize_t k, Py_ssize_t start, Py_ssize_t n) noexcept nogil:
        """Compute log P and slopes of example k, whose n nodes start at `start`."""
        cdef Py_ssize_t size = self.itemsize, i
        cdef char *margins = <char *>self.margins + start * size
        cdef double total = 0
        self.loops.path_margins(
            self.E.values, self.stride, self.path + start, n,
            <char *>self.z + k * self.stride * size, margins)
        self.loops.log_sigmoids(margins, n, <char *>self.shares + start * size)
        for i in range(n):
            total += (<float *>margins)[i] if size == 4 else (<double *>margins)[i]
        return total

    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil:
        """Compute log P of the words of K examples.

        Equivalent to, with the logits ``y = z @ E.T`` and the sign of each branch::

            target[k] = log_sigmoid(sign * y[k, path]).sum()

        In training the slopes, ``sigmoid(-sign * y[k, path])``, are kept.
        """
        cdef Py_ssize_t k, i, start = 0, n
        cdef int row
        for k in range(K):
            self.own.high[k], self.own.sum[k] = 0, 1
            self.own.target[k] = -INFINITY
        if self.at.scoring:
            for k in range(K):
                if self.at.words[k] >= 0:
                    n = self.climb(self.at.words[k], self.path)
                    self.own.target[k] = self.walk(k, 0, n)
            if logits != NULL:
                self.descend(K, <char *>logits)
            return
        self.n_met = 0
        for k in range(K):
            self.starts[k] = start
            start += self.climb(self.at.words[k], self.path + start)
        self.starts[K] = start
        for i in range(start):
            row = self.path[i] if self.path[i] >= 0 else ~self.path[i]
            if self.slot_of[row] < 0:
                self.slot_of[row] = <int>self.n_met
                self.met[self.n_met] = row
                self.n_met += 1
            self.slots[i] = self.slot_of[row]
        for i in range(self.n_met):
            self.slot_of[self.met[i]] = -1
        self.solver.visit(self.E, self.met, self.n_met)
        for k in range(K):
            start = self.starts[k]
            self.own.target[k] = self.walk(k, start, self.starts[k + 1] - start)

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
                    &self.children[0, 0], self.n_rows, n_words, self.inner, ABREAST,
                    self.log_p)
            self.loops.transpose(
                self.log_p, ABREAST, n_words, n, log_p + k * n_words * size, n_words)

    cdef void backward(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Compute the gradient of the log-likelihood for z, and update visited nodes.

        Equivalent to, with g = 0 off the paths and the old E on the right::

            g[k, path] = sign * sigmoid(-sign * y[k, path])
            dz = g @ E
            E[:] = E + rate * g.T @ z - decay * E (but for the bias)
        """
        cdef Py_ssize_t size = self.itemsize, width = self.stride * self.itemsize
        cdef Py_ssize_t k, start
        memset(self.slopes, 0, K * width)
        memset(self.gradients, 0, self.n_met * width)
        for k in range(K):
            start = self.starts[k]
            self.loops.path_gradients(
                self.E.values, self.stride, self.path + start, self.starts[k + 1] - start,
                <char *>self.shares + start * size, <char *>self.z + k * width,
                self.slots + start, self.gradients, <char *>self.slopes + k * width)
        solver.scattered(step, self.E, self.met, self.n_met, 0, self.gradients)

    cdef void end(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Compute dL/da and dL/dx; dL/dz has a row per example here."""
        cdef Py_ssize_t h = self.at.n_hidden, n = self.at.n_inputs, size = self.itemsize, k
        cdef char *dz
        for k in range(K):
            dz = <char *>self.slopes + k * self.stride * size
            memcpy(<char *>self.at.da + k * h * size, dz, h * size)
            if self.direct:
                memcpy(<char *>self.at.dx + k * n * size, dz + h * size, n * size)
            else:
                memset(<char *>self.at.dx + k * n * size, 0, n * size)

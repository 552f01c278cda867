"""A memory of hidden units, which reaches further back than their context.

It is computed from the activations a of the paper's hidden units. Each unit has a memory
c, which follows from the memory of the word before and from a new value z::

    z, k, o = tanh(f0 + F0 a), sigmoid(f1 + F1 a), sigmoid(f2 + F2 a)
    c = k * c_before + (1 - k) * z
    above = a + o * c

The gate k keeps a part of the memory, and the gate o outputs a part of it. Both see the
context, not the memory. So the products with weights are those of many examples at once,
and only c is computed word by word (Bradbury et al., 2017). The paper proposes recurrent
networks for longer contexts (section 5.2, item 4).
"""

from libc.string cimport memcmp, memcpy, memset

from nplm._kernels.neural._inputs cimport Activations, Inputs
from nplm._kernels.neural._loops cimport Scratch
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef class Gates:
    """The new values z and the gates k and o of each example.

    Equivalent to ``reference.neural.gates``.

    Parameters
    ----------
    F, f : Parameter
        Weights and biases, (3 * n_hidden, n_hidden) and (3 * n_hidden,): of z, of the
        gates k and of the gates o.
    at : Activations
        Activations that they see.
    scratch : Scratch
        Memory of the thread.
    """

    def __cinit__(self, Parameter F, Parameter f, Activations at, Scratch scratch):
        cdef Py_ssize_t h = at.n_hidden
        if (F.rows, F.columns, f.columns) != (3 * h, h, 3 * h):
            raise ValueError(f"F of shape {F.rows, F.columns} for {h} units")
        self.f, self.h = f, h
        self.by_F = Weighted(F, at, scratch)
        self.rows = scratch.numbers(at.batch_size * 3 * h)
        self.df = scratch.numbers(3 * h)

    cdef char *row(self, Activations at, Py_ssize_t k) noexcept nogil:
        return <char *>self.rows + k * 3 * self.h * at.itemsize

    cdef void forward(self, Activations below, Py_ssize_t K) noexcept nogil:
        """Compute z, k and o from the activations of the units below."""
        cdef Py_ssize_t h = self.h, k
        self.by_F.forward(below.a, self.rows, K)
        for k in range(K):
            below.loops.add(self.row(below, k), self.f.values, 3 * h, 1)
            below.loops.tanh(self.row(below, k), h)
            below.loops.sigmoid(self.row(below, k) + h * below.itemsize, 2 * h)

    cdef void backward(
        self, Activations below, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Add to dL/da of the units below, from the slopes of the sums, and update."""
        cdef Py_ssize_t n = 3 * self.h, k
        memset(self.df, 0, n * below.itemsize)
        for k in range(K):
            below.loops.add(self.df, self.row(below, k), n, 1)
        solver.vector(step, self.f, self.df)
        self.by_F.backward(below.a, self.rows, below.da, K, solver, step)


cdef class Remembering(Hidden):
    """The memory in training, which goes on from one mini-batch to the next.

    A run is a number of examples that are consecutive windows of X. The memory goes on
    within it, but is empty where a window does not follow the one before, as at the start
    of a document. A run begins with the memory that a run of the last mini-batch left
    after the window before. Gradients end where a run begins (truncated
    back-propagation through time).

    Equivalent to ``reference.neural.remember``.

    Parameters
    ----------
    below : Hidden
        Hidden units, which compute a from x.
    gates : Gates
        Gates that see a.
    inner : Activations
        Activations of `below`.
    at : Activations
        Activations of this part.
    scratch : Scratch
        Memory of the thread.
    memory : ndarray of bytes, shape (n_carried, bytes of n_hidden numbers)
        What the runs of a mini-batch leave. Further runs leave nothing.
    last : ndarray of intp, shape (n_carried,)
        The windows after which they left it, or -1.
    """

    def __cinit__(
        self, Hidden below, Gates gates, Activations inner, Activations at,
        Scratch scratch, unsigned char[:, ::1] memory, Py_ssize_t[::1] last,
    ):
        cdef Py_ssize_t h = at.n_hidden
        if gates.h != h or inner.n_hidden != h or memory.shape[1] != h * at.itemsize:
            raise ValueError(f"{memory.shape[1]} bytes of memory for {h} units")
        if memory.shape[0] != last.shape[0] or last.shape[0] < 1:
            raise ValueError(f"memory of {memory.shape[0]} and {last.shape[0]} runs")
        self.below, self.gates, self.inner = below, gates, inner
        self.memory, self.last, self.n_carried = memory, last, last.shape[0]
        self.c = scratch.numbers(at.batch_size * h)
        self.carried = scratch.numbers(self.n_carried * h)
        self.nothing = scratch.numbers(h)
        memset(self.nothing, 0, h * at.itemsize)
        self.dc = scratch.numbers(h)
        self.before = <const void **>scratch.bytes(at.batch_size * sizeof(void *))

    cdef bint begins(self, Activations at, Py_ssize_t k) noexcept nogil:
        """Return whether a run begins with example k."""
        return k == 0 or at.rows[k] != at.rows[k - 1] + 1

    cdef void find_memory(self, Activations at, Py_ssize_t K) noexcept nogil:
        """Find the memory before each example."""
        cdef Py_ssize_t size = at.n_hidden * at.itemsize, run = -1, j, k
        cdef char *carried
        for k in range(K):
            self.before[k] = self.nothing
            if not self.begins(at, k):
                if at.follows[k]:
                    self.before[k] = <char *>self.c + (k - 1) * size
                continue
            run += 1
            if not at.follows[k] or run >= self.n_carried:
                continue
            for j in range(self.n_carried):
                if self.last[j] == at.rows[k] - 1:
                    carried = <char *>self.carried + run * size
                    memcpy(carried, &self.memory[j, 0], size)
                    self.before[k] = carried

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t h = at.n_hidden, size = h * at.itemsize, run = -1, j, k
        self.inner.x, self.inner.dx = at.x, at.dx
        self.below.forward(self.inner, K)
        self.gates.forward(self.inner, K)
        # Of all examples first: a run writes where another has to read.
        self.find_memory(at, K)
        for k in range(K):
            run += self.begins(at, k)
            at.loops.remember(
                self.gates.row(at, k), self.before[k], <char *>self.inner.a + k * size,
                h, <char *>self.c + k * size, <char *>at.a + k * size)
            if run < self.n_carried and (k == K - 1 or self.begins(at, k + 1)):
                memcpy(&self.memory[run, 0], <char *>self.c + k * size, size)
                self.last[run] = at.rows[k]
        for j in range(run + 1, self.n_carried):
            self.last[j] = -1

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        cdef Py_ssize_t h = at.n_hidden, size = h * at.itemsize, k
        memset(self.dc, 0, size)
        for k in range(K - 1, -1, -1):
            at.loops.remember_slopes(
                self.gates.row(at, k), self.before[k], <char *>self.c + k * size,
                <char *>at.da + k * size, h, self.dc)
            if self.begins(at, k) or not at.follows[k]:
                memset(self.dc, 0, size)
        memcpy(self.inner.da, at.da, K * size)
        self.gates.backward(self.inner, K, solver, step)
        self.below.backward(self.inner, K, solver, step)


cdef class Recalling(Hidden):
    """The memory in scoring: each example has that of its own window alone.

    It is empty before the first context of the window. Where a text begins in the
    window, after equal words that fill it, it is empty before the last context that has
    these words only.

    Consecutive windows of a text share the gates, but not the memory, so that the score
    of a window has the same bits alone and among others.

    Equivalent to ``reference.neural.recall``.

    Parameters
    ----------
    inputs : Inputs
        Inputs that compute the x of `positions`.
    below : Hidden
        Hidden units, which compute their a.
    gates : Gates
        Gates that see it.
    positions : Activations
        Activations of contexts as short as in training.
    at : Activations
        Activations of this part; its contexts are whole windows.
    scratch : Scratch
        Memory of the thread.
    """

    def __cinit__(
        self, Inputs inputs, Hidden below, Gates gates, Activations positions,
        Activations at, Scratch scratch,
    ):
        self.inputs, self.below, self.gates = inputs, below, gates
        self.positions = positions
        self.n_window, self.n_words = positions.n_context, at.n_context
        n = at.batch_size + self.n_words - self.n_window
        if not 1 <= self.n_window <= self.n_words or positions.batch_size < n:
            raise ValueError(
                f"{positions.batch_size} positions of {self.n_window} words for "
                f"{at.batch_size} windows of {self.n_words}")
        if gates.h != at.n_hidden or positions.n_hidden != at.n_hidden:
            raise ValueError(f"gates of {gates.h} units for {at.n_hidden}")
        self.last = <Py_ssize_t *>scratch.bytes(at.batch_size * sizeof(Py_ssize_t))

    cdef Py_ssize_t end_of_run(
        self, Activations at, Py_ssize_t first, Py_ssize_t K,
    ) noexcept nogil:
        """Return the end of the windows from `first` on that follow each other."""
        cdef Py_ssize_t n = self.n_words, k = first + 1
        while k < K and memcmp(
            at.contexts + k * n + 1, at.contexts + (k - 1) * n, (n - 1) * sizeof(int),
        ) == 0:
            k += 1
        return k

    cdef Py_ssize_t take_run(
        self, Activations at, Py_ssize_t first, Py_ssize_t end, Py_ssize_t n,
    ) noexcept nogil:
        """Copy the contexts in windows that follow each other, after n positions.

        Return the new number of positions, or n if there is no room. The contexts are
        those of the first window, from the most distant that it remembers to its own, and
        that of each further window: none of them begins to remember earlier.
        """
        cdef Py_ssize_t size = self.n_window * sizeof(int), n_words = self.n_words, k, p
        cdef Py_ssize_t n_before = self.n_remembered(at, first) - 1
        cdef char *to = <char *>self.positions.contexts + n * size
        if n + n_before + end - first > self.positions.batch_size:
            return n
        for p in range(n_before, 0, -1):
            memcpy(to, at.contexts + first * n_words + p, size)
            to += size
        for k in range(first, end):
            memcpy(to, at.contexts + k * n_words, size)
            to += size
            self.last[k] = n + n_before + k - first
        return n + n_before + end - first

    cdef Py_ssize_t n_remembered(self, Activations at, Py_ssize_t k) noexcept nogil:
        """Return the number of contexts of a window from the start of the text on."""
        cdef Py_ssize_t n = self.n_words, alike = 1
        cdef const int *words = at.contexts + k * n
        while alike < n and words[n - 1 - alike] == words[n - 1]:
            alike += 1
        return n - self.n_window + 1 - max(alike - self.n_window, 0)

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t size = at.n_hidden * at.itemsize, first = 0, begin, end, k
        cdef Py_ssize_t n, taken, length, last
        while first < K:
            # As many windows as there is room for: products are those of whole batches.
            begin, n = first, 0
            while first < K:
                end = self.end_of_run(at, first, K)
                taken = self.take_run(at, first, end, n)
                if taken == n:
                    break
                first, n = end, taken
            self.inputs.forward(self.positions, n)
            self.below.forward(self.positions, n)
            self.gates.forward(self.positions, n)
            for k in range(begin, first):
                length, last = self.n_remembered(at, k), self.last[k]
                at.loops.recall(
                    self.gates.row(at, last + 1 - length),
                    <char *>self.positions.a + last * size, length, at.n_hidden,
                    <char *>at.a + k * size)

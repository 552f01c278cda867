"""LSTM cells: hidden units with a state, which reaches further back than a context.

A cell has a state c and an activation a, which follow from the inputs x of the next word
and from the activations of all cells before it::

    f, o, z = sigmoid, sigmoid, tanh of d + H x + V a_before
    c = f * c_before + (1 - f) * z
    a = o * tanh(c)

The gate f keeps a part of c, and the gate o outputs a part of it (Hochreiter and
Schmidhuber, 1997; with coupled gates, Greff et al., 2017). The paper proposes recurrent
networks for longer contexts (section 5.2, item 4).

The products H x are those of many examples at once, and of equal contexts one. Those with V
wait for the word before, so that a step takes several texts side by side, as columns of
a matrix in panels.
"""

from libc.string cimport memcpy, memset

from nplm._kernels.neural._inputs cimport Activations, Contexts, Inputs
from nplm._kernels.neural._loops cimport LINE, Scratch, round_up
from nplm._kernels.neural._products cimport Recurrence
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef class Cell(Hidden):
    """Cells of several texts, which all take a step at once.

    Equivalent to ``reference.neural.cell``.

    Parameters
    ----------
    H, d, V : Parameter
        Weights and biases, (3 * h, n_inputs), (3 * h,) and (3 * h, h): of the gates f and
        o, and of the new values z.
    at : Activations
        Activations whose x they see.
    scratch : Scratch
        Memory of the thread.
    **options
        Parameters of the class that is made.
    """

    def __cinit__(
        self, Parameter H, Parameter d, Parameter V, Activations at, Scratch scratch,
        **options,
    ):
        cdef Py_ssize_t h = V.columns, columns = round_up(at.batch_size, LINE)
        if (V.rows, H.rows, d.columns, at.n_hidden) != (3 * h, 3 * h, 3 * h, h):
            raise ValueError(
                f"H of shape {H.rows, H.columns} and V of {V.rows, V.columns} for "
                f"{at.n_hidden} units")
        self.d, self.V, self.h, self.n_sums = d, V, h, V.rows
        self.loops, self.itemsize = at.loops, at.itemsize
        self.by_H = Weighted(H, at, scratch, carries=at.learns_inputs)
        if not at.scoring:
            self.by_V = Weighted(V, at, scratch, carries=False)
        self.rows = scratch.numbers(at.batch_size * V.rows)
        self.sums = scratch.numbers(V.rows * columns)
        self.recurrent = scratch.numbers(V.rows * columns)
        self.by_V_before = Recurrence(
            at.tier, scratch, rows=V.rows, n=h, columns=columns, scoring=at.scoring,
            rounds=at.columns > 1)
        self.a = scratch.numbers(h * columns)
        self.c = scratch.numbers(h * columns)

    cdef void *row(self, void *rows, Py_ssize_t k) noexcept nogil:
        """Return row k of (any, h) numbers."""
        return <char *>rows + k * self.h * self.itemsize

    cdef void clear(
        self, void *panels, Py_ssize_t rows, Py_ssize_t column,
    ) noexcept nogil:
        """Set a column of a (rows, columns) matrix in panels to 0."""
        cdef Py_ssize_t place = column // LINE * rows * LINE + column % LINE
        self.loops.fill(<char *>panels + place * self.itemsize, rows, LINE, 0)

    cdef void step(
        self, void *sums, Py_ssize_t n, void *a_before, void *c_before, void *a, void *c,
    ) noexcept nogil:
        """Take a step of n texts, whose `sums` are H x, in panels, and become gates.

        The a and c after the step may be where those before it are.
        """
        cdef Py_ssize_t h = self.h, size = h * LINE * self.itemsize, p
        cdef Py_ssize_t columns = round_up(n, LINE)
        # Apart from H x, in an order of sums that does not depend on the other texts.
        self.by_V_before.forward(a_before, self.recurrent, n)
        for p in range(columns // LINE):
            self.loops.cell(
                <char *>sums + 3 * p * size, <char *>self.recurrent + 3 * p * size,
                self.d.values, h, <char *>c_before + p * size, <char *>c + p * size,
                <char *>a + p * size)


cdef class Continuing(Cell):
    """Cells whose state goes on from one mini-batch to the next, as in training.

    A run is a number of examples that are consecutive windows of X, and a column of the
    steps. The state goes on within it, but is empty where a window does not follow the
    one before, as at the start of a document. A run begins with the state that a run of
    the last mini-batch left after the window before. Gradients end where a run begins
    (truncated back-propagation through time).

    Equivalent to ``reference.neural.lstm``.

    Parameters
    ----------
    H, d, V, at, scratch
        Arguments of `Cell`.
    memory : ndarray of bytes, shape (n_carried, bytes of 2 * n_hidden numbers)
        The a and c that the runs of a mini-batch leave. Further runs leave nothing.
    last : ndarray of intp, shape (n_carried,)
        The windows after which they left them, or -1.
    """

    def __cinit__(
        self, Parameter H, Parameter d, Parameter V, Activations at, Scratch scratch, *,
        unsigned char[:, ::1] memory, Py_ssize_t[::1] last,
    ):
        cdef Py_ssize_t h = self.h, K = at.batch_size, n = self.n_sums
        cdef Py_ssize_t columns = round_up(K, LINE)
        if memory.shape[1] != 2 * h * at.itemsize:
            raise ValueError(f"{memory.shape[1]} bytes of memory for {h} units")
        if memory.shape[0] != last.shape[0] or last.shape[0] < 1:
            raise ValueError(f"memory of {memory.shape[0]} and {last.shape[0]} runs")
        self.memory, self.last = memory, last
        self.n_carried = last.shape[0]
        self.starts = <Py_ssize_t *>scratch.bytes(K * sizeof(Py_ssize_t))
        self.lengths = <Py_ssize_t *>scratch.bytes(K * sizeof(Py_ssize_t))
        self.numbers = <Py_ssize_t *>scratch.bytes(K * sizeof(Py_ssize_t))
        self.order = <Py_ssize_t *>scratch.bytes(K * sizeof(Py_ssize_t))
        self.steps = <Py_ssize_t *>scratch.bytes((K + 1) * sizeof(Py_ssize_t))
        self.distinct = scratch.numbers(K * n)
        self.step_rows = scratch.numbers(n * columns)
        self.activations = scratch.numbers(K * h)
        self.states = scratch.numbers(K * h)
        self.before = scratch.numbers(2 * K * h)
        self.c_first = scratch.numbers(K * h)
        self.da = scratch.numbers(K * h)
        if at.scoring:
            return
        self.slopes_a = scratch.numbers(h * columns)
        self.c_before = scratch.numbers(h * columns)
        self.dc = scratch.numbers(h * columns)
        self.dd_panel = scratch.numbers(n * LINE)
        self.dd = scratch.numbers(n * LINE)

    cdef bint begins(self, Activations at, Py_ssize_t k) noexcept nogil:
        """Return whether a run begins with example k."""
        return k == 0 or at.rows[k] != at.rows[k - 1] + 1

    cdef void find_order(self, Activations at, Py_ssize_t K) noexcept nogil:
        """Find the runs, longest first, and the order of the examples step by step."""
        cdef Py_ssize_t n_runs = 0, n = 0, run = -1, length, i, k, t
        for k in range(K):
            if not self.begins(at, k):
                continue
            run += 1
            length = 1
            while k + length < K and not self.begins(at, k + length):
                length += 1
            i = n_runs
            while i > 0 and self.lengths[i - 1] < length:
                self.starts[i] = self.starts[i - 1]
                self.lengths[i] = self.lengths[i - 1]
                self.numbers[i] = self.numbers[i - 1]
                i -= 1
            self.starts[i], self.lengths[i], self.numbers[i] = k, length, run
            n_runs += 1
        self.n_steps = self.lengths[0]
        self.whole = at.columns > 1 and at.n_inputs > 0
        for t in range(self.n_steps):
            self.steps[t] = n
            i = 0
            while i < n_runs and self.lengths[i] > t:
                self.order[n] = self.starts[i] + t
                n += 1
                i += 1
            self.whole = self.whole and i % LINE == 0
        self.steps[self.n_steps] = n
        self.even = self.whole and self.n_steps * n_runs == K

    cdef void *before_step(
        self, Activations at, Py_ssize_t t, void *after, void *panels,
    ) noexcept nogil:
        """Return what is `after` the last step, or a copy with 0 where a text begins."""
        cdef Py_ssize_t first = self.steps[t], n = self.steps[t + 1] - first, i
        for i in range(n if t > 0 else 0):
            if at.follows[self.order[first + i]]:
                continue
            if after != panels:
                memcpy(panels, after, round_up(n, LINE) * self.h * self.itemsize)
                after = panels
            self.clear(panels, self.h, i)
        return after

    cdef void *sums_of(
        self, Activations at, Py_ssize_t first, Py_ssize_t n,
    ) noexcept nogil:
        """Return H x of the n examples of a step, in panels."""
        cdef Py_ssize_t size = self.n_sums * self.itemsize, i
        cdef void *panels = self.row(self.rows, 3 * first) if self.whole else self.sums
        for i in range(n):
            memcpy(<char *>self.step_rows + i * size,
                   <char *>self.distinct + at.of[self.order[first + i]] * size, size)
        self.loops.into_panels(
            self.step_rows, self.n_sums, n, self.n_sums, panels, round_up(n, LINE))
        return panels

    cdef void add_slopes(
        self, Activations at, void *sums, Py_ssize_t first, Py_ssize_t n,
    ) noexcept nogil:
        """Add the slopes of a step's sums, in panels, to those of the distinct contexts."""
        cdef Py_ssize_t size = self.n_sums * self.itemsize, i
        self.loops.out_of_panels(sums, self.n_sums, n, self.step_rows, self.n_sums)
        for i in range(n):
            self.loops.add(
                <char *>self.distinct + at.of[self.order[first + i]] * size,
                <char *>self.step_rows + i * size, self.n_sums, 1)

    cdef void find_state(self, Activations at) noexcept nogil:
        """Find the state before each run: a in the first rows of `before`, and c."""
        cdef Py_ssize_t size = self.h * at.itemsize, i, j, k
        memset(self.before, 0, self.steps[1] * size)
        memset(self.c_first, 0, self.steps[1] * size)
        for i in range(self.steps[1]):
            k = self.starts[i]
            if not at.follows[k] or self.numbers[i] >= self.n_carried:
                continue
            for j in range(self.n_carried):
                if self.last[j] == at.rows[k] - 1:
                    memcpy(self.row(self.before, i), &self.memory[j, 0], size)
                    memcpy(self.row(self.c_first, i), &self.memory[j, size], size)

    cdef void *load(
        self, void *array, Py_ssize_t rows, Py_ssize_t n, void *panels,
    ) noexcept nogil:
        """Return n examples of an array in panels: these, if they are not."""
        if self.whole:
            return array
        self.loops.into_panels(array, rows, n, rows, panels, round_up(n, LINE))
        return panels

    cdef void store(
        self, void *panels, Py_ssize_t rows, Py_ssize_t n, void *array,
    ) noexcept nogil:
        """Set n examples of an array from panels, if they are not these."""
        if not self.whole:
            self.loops.out_of_panels(panels, rows, n, array, rows)

    cdef void take_row(self, void *array, Py_ssize_t place, void *to) noexcept nogil:
        """Copy the numbers of an example from an array with h for each."""
        cdef Py_ssize_t size = self.itemsize, lane = place % LINE, j
        cdef char *panel = <char *>self.row(array, place - lane) + lane * size
        if not self.whole:
            memcpy(to, self.row(array, place), self.h * size)
            return
        for j in range(self.h):
            memcpy(<char *>to + j * size, panel + j * LINE * size, size)

    cdef void leave_state(self, Activations at) noexcept nogil:
        """Leave the state after each run to the next mini-batch."""
        cdef Py_ssize_t size = self.h * at.itemsize, i, run, place
        for run in range(self.n_carried):
            self.last[run] = -1
        for i in range(self.steps[1]):
            run = self.numbers[i]
            if run < self.n_carried:
                place = self.steps[self.lengths[i] - 1] + i
                self.take_row(self.activations, place, &self.memory[run, 0])
                self.take_row(self.states, place, &self.memory[run, size])
                self.last[run] = at.rows[self.order[place]]

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t h = self.h, size = h * at.itemsize, first, n, p, t
        cdef void *sums
        cdef void *a = self.a
        cdef void *c = self.c
        cdef void *a_before
        cdef void *c_before
        cdef void *after = self.activations
        self.by_V_before.begin(self.V.values)
        self.find_order(at, K)
        self.by_H.forward(at.x, self.distinct, at.n_distinct[0])
        # Of all runs first: one writes where another has to read.
        self.find_state(at)
        n = self.steps[1]
        at.loops.into_panels(self.before, h, n, h, self.a, round_up(n, LINE))
        at.loops.into_panels(self.c_first, h, n, h, self.c, round_up(n, LINE))
        for t in range(self.n_steps):
            first, n = self.steps[t], self.steps[t + 1] - self.steps[t]
            a_before = self.before_step(at, t, a, self.a)
            c_before = self.before_step(at, t, c, self.c)
            a = self.row(self.activations, first) if self.whole else self.a
            c = self.row(self.states, first) if self.whole else self.c
            sums = self.sums_of(at, first, n)
            self.step(sums, n, a_before, c_before, a, c)
            if not at.scoring:
                self.store(sums, self.n_sums, n, self.row(self.rows, 3 * first))
            self.store(a, h, n, self.row(self.activations, first))
            self.store(c, h, n, self.row(self.states, first))
        self.leave_state(at)
        if self.whole:
            # Of equal runs, what is after a step is before the next.
            after = self.row(self.before, self.steps[1]) if self.even else self.da
            at.loops.out_of_panels(self.activations, h, K, after, h)
        for p in range(K):
            memcpy(self.row(at.a, self.order[p]), self.row(after, p), size)
        for t in range(1, self.n_steps):
            first = self.steps[t]
            for p in range(first, self.steps[t + 1]):
                if not at.follows[self.order[p]]:
                    memset(self.row(self.before, p), 0, size)
                elif not self.even:
                    memcpy(self.row(self.before, p),
                           self.row(after, self.steps[t - 1] + p - first), size)

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        cdef Py_ssize_t h = self.h, n_sums = self.n_sums, size = h * at.itemsize
        cdef Py_ssize_t panel = size * LINE, first, n, n_next = 0, columns, i, p, t
        cdef void *sums = NULL
        cdef void *before
        for p in range(0 if self.even else K):
            memcpy(self.row(self.da, p), self.row(at.da, self.order[p]), size)
        memset(self.dc, 0, round_up(self.steps[1], LINE) * size)
        memset(self.dd_panel, 0, n_sums * LINE * at.itemsize)
        memset(self.distinct, 0, at.n_distinct[0] * n_sums * at.itemsize)
        for t in range(self.n_steps - 1, -1, -1):
            first, n = self.steps[t], self.steps[t + 1] - self.steps[t]
            columns = round_up(n, LINE)
            if self.even:  # a step has an example of each run, one run after the other
                at.loops.into_panels(
                    self.row(at.da, t), self.n_steps * h, n, h, self.slopes_a, columns)
            else:
                at.loops.into_panels(
                    self.row(self.da, first), h, n, h, self.slopes_a, columns)
            if n_next > 0:  # `sums` are the slopes of the next step
                self.by_V_before.backward(sums, self.recurrent, n_next)
                self.before_step(at, t + 1, self.recurrent, self.recurrent)
                self.before_step(at, t + 1, self.dc, self.dc)
                at.loops.add(
                    self.slopes_a, self.recurrent, round_up(n_next, LINE) * h, 1)
            sums = self.load(self.row(self.rows, 3 * first), n_sums, n, self.sums)
            if t > 0:
                before = self.row(self.states, self.steps[t - 1])
                before = self.before_step(
                    at, t, self.load(before, h, n, self.c_before), self.c_before)
            else:
                before = self.c_before
                at.loops.into_panels(self.c_first, h, n, h, before, columns)
            for p in range(columns // LINE):
                at.loops.cell_slopes(
                    <char *>sums + 3 * p * panel, <char *>before + p * panel,
                    <char *>self.slopes_a + p * panel, h, <char *>self.dc + p * panel,
                    self.dd_panel)
            self.add_slopes(at, sums, first, n)
            self.store(sums, n_sums, n, self.row(self.rows, 3 * first))
            n_next = n
        at.loops.out_of_panels(self.dd_panel, n_sums, LINE, self.dd, n_sums)
        for i in range(1, LINE):
            at.loops.add(
                self.dd, <char *>self.dd + i * n_sums * at.itemsize, n_sums, 1)
        solver.vector(step, self.d, self.dd)
        self.by_V.products.begin_update(self.before, K)
        if self.whole:
            self.by_V.follow(self.rows, self.da, K, solver, step)
        else:
            self.by_V.backward(self.before, self.rows, self.da, K, solver, step)
        self.by_H.backward(at.x, self.distinct, at.dx, at.n_distinct[0], solver, step)


cdef class Windows(Cell):
    """Cells that read each window alone, in scoring: their state is empty before it.

    Where a text begins in the window, after equal words that fill it, it is empty before
    the last context that has these words only. The score of a window has the same bits
    alone and among others.

    Windows that begin with the same words, as those of a short text do, share the steps
    over these. A context of several windows has its products H x once.

    Equivalent to ``reference.neural.lstm_of_windows``.

    Parameters
    ----------
    H, d, V, positions, scratch
        Arguments of `Cell`; its activations are those of contexts as short as in
        training.
    inputs : Inputs
        Inputs that compute the x of `positions`.
    windows : Activations
        Activations of this part; its contexts are whole windows.
    """

    def __cinit__(
        self, Parameter H, Parameter d, Parameter V, Activations positions,
        Scratch scratch, *, Inputs inputs, Activations windows,
    ):
        cdef Py_ssize_t K = windows.batch_size, size = sizeof(Py_ssize_t)
        self.inputs, self.positions = inputs, positions
        self.n_window, self.n_words = positions.n_context, windows.n_context
        if not (
            1 <= self.n_window <= self.n_words
            and positions.batch_size >= K and self.h == windows.n_hidden
        ):
            raise ValueError(
                f"{positions.batch_size} positions of {self.n_window} words for "
                f"{K} windows of {self.n_words}")
        self.order = <Py_ssize_t *>scratch.bytes(K * size)
        self.lengths = <Py_ssize_t *>scratch.bytes(K * size)
        self.starts = <Py_ssize_t *>scratch.bytes((self.n_words + 2) * size)
        self.of = <Py_ssize_t *>scratch.bytes(K * size)
        self.here = Contexts(scratch, self.n_window, K)
        self.most_known = 2 * K
        self.known = Contexts(scratch, self.n_window, self.most_known)
        self.known_words = <int *>scratch.bytes(
            self.most_known * self.n_window * sizeof(int))
        self.known_sums = scratch.numbers(self.most_known * self.n_sums)
        self.a_rows = scratch.numbers(K * self.h)
        self.c_rows = scratch.numbers(K * self.h)
        self.some_rows = scratch.numbers(K * self.h)

    cdef Py_ssize_t n_contexts(self, Activations at, Py_ssize_t k) noexcept nogil:
        """Return the number of contexts of a window from the start of the text on."""
        cdef Py_ssize_t n = self.n_words, alike = 1
        cdef const int *words = at.contexts + k * n
        while alike < n and words[n - 1 - alike] == words[n - 1]:
            alike += 1
        return n - self.n_window + 1 - max(alike - self.n_window, 0)

    cdef void sort(self, Activations at, Py_ssize_t K) noexcept nogil:
        """Set `order`, `lengths`, and ``starts[t]``: the windows with more than t."""
        cdef Py_ssize_t i, k, t
        memset(self.starts, 0, (self.n_words + 2) * sizeof(Py_ssize_t))
        for k in range(K):
            self.starts[self.n_contexts(at, k)] += 1
        for t in range(self.n_words, -1, -1):
            self.starts[t] += self.starts[t + 1]
        for k in range(K - 1, -1, -1):
            t = self.n_contexts(at, k)
            self.starts[t] -= 1
            i = self.starts[t]
            self.order[i], self.lengths[i] = k, t

    cdef Py_ssize_t group(self, Activations at, Py_ssize_t t) noexcept nogil:
        """Find the windows that are the same up to context t; return how many differ."""
        cdef Py_ssize_t i
        self.here.clear()
        for i in range(self.starts[t]):
            self.of[i] = self.here.number(
                self.context(at, i, t), self.of[i] if t > 0 else 0)
        return self.here.n

    cdef void take_state(self, Py_ssize_t n, Py_ssize_t n_before) noexcept nogil:
        """Take the state that each of n continues, of the `n_before` of the last step."""
        cdef Py_ssize_t h = self.h, size = h * self.itemsize, j, columns
        cdef bint moves = False
        for j in range(n):
            moves = moves or self.here.before[j] != j
        if not moves:
            return
        columns = round_up(n, LINE)
        self.loops.out_of_panels(self.a, h, n_before, self.a_rows, h)
        self.loops.out_of_panels(self.c, h, n_before, self.c_rows, h)
        for j in range(n):
            memcpy(self.row(self.some_rows, j),
                   self.row(self.a_rows, self.here.before[j]), size)
        self.loops.into_panels(self.some_rows, h, n, h, self.a, columns)
        for j in range(n):
            memcpy(self.row(self.some_rows, j),
                   self.row(self.c_rows, self.here.before[j]), size)
        self.loops.into_panels(self.some_rows, h, n, h, self.c, columns)

    cdef int *context(self, Activations at, Py_ssize_t i, Py_ssize_t t) noexcept nogil:
        """Return context t, from the start of the text, of the window at place i."""
        return at.contexts + self.order[i] * self.n_words + self.lengths[i] - 1 - t

    cdef void learn(self, Activations at, Py_ssize_t t) noexcept nogil:
        """Compute H x of the contexts of step t, and of further steps while there is room.

        The product takes as long for a few contexts as for a whole mini-batch.
        """
        cdef Py_ssize_t width = self.n_window * sizeof(int), first, most, i, n
        cdef int *context
        cdef int *words
        if self.known.n + self.most_known // 2 > self.most_known:
            self.known.clear()
        first, most = self.known.n, self.known.n + self.most_known // 2
        while self.starts[t] > 0 and self.known.n < most:
            for i in range(self.starts[t]):
                context = self.context(at, i, t)
                if self.known.slot(context, 0)[0] >= 0:
                    continue
                if self.known.n == most:
                    break
                words = self.known_words + self.known.n * self.n_window
                memcpy(words, context, width)
                self.known.number(words, 0)
            t += 1
        n = self.known.n - first
        memcpy(self.positions.contexts, self.known_words + first * self.n_window,
               n * width)
        self.inputs.forward(self.positions, n)
        self.by_H.forward(
            self.positions.x,
            <char *>self.known_sums + first * self.n_sums * self.itemsize, n)

    cdef void take_sums(self, Activations at, Py_ssize_t t, Py_ssize_t n) noexcept nogil:
        """Set the first `rows` to the H x of the n contexts of step t."""
        cdef Py_ssize_t size = self.n_sums * self.itemsize, j
        for j in range(n):
            if self.known.slot(self.here.words[j], 0)[0] < 0:
                self.learn(at, t)
                break
        for j in range(n):
            memcpy(<char *>self.rows + j * size, <char *>self.known_sums
                   + self.known.slot(self.here.words[j], 0)[0] * size, size)

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t h = self.h, size = h * at.itemsize, n_before = 0, n, i, t
        self.by_V_before.begin(self.V.values)
        self.sort(at, K)
        self.known.clear()
        for t in range(self.lengths[0]):
            n = self.group(at, t)
            if t > 0:
                self.take_state(n, n_before)
            else:
                memset(self.a, 0, round_up(n, LINE) * size)
                memset(self.c, 0, round_up(n, LINE) * size)
            self.take_sums(at, t, n)
            at.loops.into_panels(
                self.rows, self.n_sums, n, self.n_sums, self.sums, round_up(n, LINE))
            self.step(self.sums, n, self.a, self.c, self.a, self.c)
            if self.starts[t + 1] < self.starts[t]:  # windows that end here
                at.loops.out_of_panels(self.a, h, n, self.a_rows, h)
            for i in range(self.starts[t + 1], self.starts[t]):
                memcpy(self.row(at.a, self.order[i]), self.row(self.a_rows, self.of[i]),
                       size)
            n_before = n

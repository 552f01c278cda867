"""Output units of classes, and of the words within each (section 5.2).

P(w) = P(class of w) P(w | class of w) (Goodman, 2001): two softmaxes, over the classes
and over the words of one class. With sqrt(|V|) classes of equal size, each has about
sqrt(|V|) rows. The rows of the classes come first in E, then the words, class by class.
"""

from libc.math cimport log
from libc.string cimport memcpy, memset

import numpy as np

from nplm._kernels._ids cimport id_below
from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Scratch, Tier
from nplm._kernels.neural._solvers cimport Solver, Step
from nplm._kernels.neural.outputs._output cimport Rows
from nplm._kernels.neural.outputs._softmax cimport Softmax

cdef inline Py_ssize_t room(Py_ssize_t K, int member, int n_members) noexcept nogil:
    """Examples of a member."""
    return K * (member + 1) // n_members - K * member // n_members


cdef enum:
    BLOCK = 256  # rows whose gradient is made at a time, so that it stays in cache


cdef class Classes(Rows):
    """Softmax over classes, and one over the words of the class of the next word.

    Equivalent to ``reference.neural.Classes``.

    Parameters
    ----------
    tier, scratch, at : Tier, Scratch, Activations
        See `Output`.
    E : Parameter
        Rows of the classes, then of the words.
    classes : Softmax
        Softmax of the first rows of E.
    rest : Softmax or None
        Softmax of the other rows, to score all words.
    labels, order : ndarray of int32, shape (n_words,)
        The class of each word, and the words in the order of their rows.
    starts : ndarray of intp, shape (n_classes + 1,)
        Start of the words of each class in `order`.
    solver : Solver or None
        Solver that updates the parameters.
    **options
        Options of `Rows`.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, *args, Softmax classes,
        Softmax rest, const int[::1] labels, const int[::1] order,
        const Py_ssize_t[::1] starts, Py_ssize_t n_words, Solver solver, **options,
    ):
        cdef Py_ssize_t K = at.batch_size, c, row
        self.classes, self.rest, self.solver = classes, rest, solver
        self.labels, self.order = labels, order
        self.starts, self.n_classes = starts, len(starts) - 1
        if not len(labels) == len(order) == starts[self.n_classes] == n_words:
            raise ValueError(f"no classes of {n_words} words: {len(labels)}")
        for c in range(self.n_classes):
            self.largest = max(self.largest, starts[c + 1] - starts[c])
        self.places = <int *>scratch.bytes(n_words * sizeof(int))
        for row in range(n_words):
            self.places[order[row]] = <int>row
        self.labels_here = <int *>scratch.bytes(K * sizeof(int))
        classes.words = self.labels_here
        if at.scoring:
            # Memory that is not written to is not resident.
            self.block = scratch.numbers(self.largest)
            self.row = scratch.numbers(n_words)
            self.class_logits = scratch.numbers(K * self.n_classes)
            return
        self.heads = <int *>scratch.bytes(self.n_classes * sizeof(int))
        self.ends = <Py_ssize_t *>scratch.bytes(
            (self.n_classes + 1) * sizeof(Py_ssize_t))
        # Of all members' examples: a team's are fewer.
        self.most = K * MAX_MEMBERS
        self.sorted = <Py_ssize_t *>scratch.bytes(self.most * sizeof(Py_ssize_t))
        self.labels_of_all = <int *>scratch.bytes(self.most * sizeof(int))
        self.largest_first = np.argsort(-np.diff(starts), kind="stable")
        self.nexts = <int *>scratch.bytes(K * sizeof(int))
        self.examples = <int *>scratch.bytes(K * sizeof(int))
        for c in range(self.n_classes):
            self.heads[c] = -1
        self.zs = scratch.numbers(K * self.stride)
        self.dzs = scratch.numbers(K * self.stride)
        self.p = scratch.numbers(K * self.largest)
        most = min(BLOCK, self.largest)
        self.memory = scratch.numbers(max(most * self.stride, solver.room(most, self.stride)))

    cdef void begin(self, Py_ssize_t K) noexcept nogil:
        self.classes.begin(K)  # all use its z

    cdef double within(
        self, int word, void *z, char *p, double *total,
    ) noexcept nogil:
        """Compute log P(word | class), and the exponentials and sum of its class."""
        cdef int label = self.labels[word]
        cdef Py_ssize_t first = self.starts[label], n = self.starts[label + 1] - first
        cdef Py_ssize_t own = self.places[word] - first, size = self.itemsize
        cdef double logit, high
        self.loops.row_dots(
            self.row_of(self.n_classes + first), n, self.stride, self.stride, z, 0, p)
        logit = (<float *>p)[own] if size == 4 else (<double *>p)[own]
        total[0] = self.loops.exp_row(p, n, &high)
        return logit - high - log(total[0])

    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil:
        """Compute log P of the words of K examples.

        Equivalent to, with the logits ``y = z @ E.T``, C classes and the rows of the
        words of each::

            target[k] = log_softmax(y[k, :C])[label] + log_softmax(y[k, rows])[word]

        In training the slopes within the classes, ``(rows == word) - softmax(y[k,
        rows])``, are kept.
        """
        cdef Py_ssize_t size = self.itemsize, i, k, n
        cdef double total
        cdef int word
        cdef char *p
        if not self.at.scoring:
            self.solver.visit_block(self.E, 0, self.n_classes)
        for k in range(K):
            word = self.at.words[k]
            self.labels_here[k] = -1 if word < 0 else self.labels[word]
        self.classes.forward(K, self.class_logits if logits != NULL else NULL)
        for k in range(K):
            self.own.high[k], self.own.sum[k] = 0, 1
            self.own.target[k] = (
                self.classes.own.target[k] - self.classes.own.high[k]
                - log(self.classes.own.sum[k]))
        if self.at.scoring:
            for k in range(K):
                word = self.at.words[k]
                if word >= 0:
                    self.own.target[k] += self.within(
                        word, <char *>self.z + k * self.stride * size,
                        <char *>self.block, &total)
            if logits != NULL:
                self.spread(K, <char *>logits)
            return
        self.group(K)
        for i in range(K):
            k = self.examples[i]
            word = self.at.words[k]
            n = self.starts[self.labels[word] + 1] - self.starts[self.labels[word]]
            p = <char *>self.p + i * self.largest * size
            if i == 0 or self.labels_here[self.examples[i - 1]] != self.labels[word]:
                self.solver.visit_block(
                    self.E, self.n_classes + self.starts[self.labels[word]], n)
            memcpy(<char *>self.zs + i * self.stride * size,
                   <char *>self.z + k * self.stride * size, self.stride * size)
            self.own.target[k] += self.within(
                word, <char *>self.zs + i * self.stride * size, p, &total)
            self.loops.scale(p, n, -1 / total)
            p += (self.places[word] - self.starts[self.labels[word]]) * size
            if size == 4:
                (<float *>p)[0] += 1
            else:
                (<double *>p)[0] += 1

    cdef void arrange(
        self, const int[:] y, const Py_ssize_t[::1] index, Py_ssize_t start,
        Py_ssize_t K, int n_members, Py_ssize_t *places,
    ) noexcept nogil:
        """Give the examples of a class to one member, the largest classes first.

        An update of a class goes over all its words, however many examples it has. A
        member whose part is full leaves the rest of a class to others.
        """
        cdef Py_ssize_t c, i, k, left, some, first
        cdef int member, other
        if n_members == 1 or K > self.most:
            Rows.arrange(self, y, index, start, K, n_members, places)
            return
        memset(self.ends, 0, (self.n_classes + 1) * sizeof(Py_ssize_t))
        for k in range(K):
            c = self.labels[id_below(&y[index[start + k]], <int>self.n_words)]
            self.labels_of_all[k] = <int>c  # y may change
            self.ends[c + 1] += 1
        for c in range(self.n_classes):
            self.ends[c + 1] += self.ends[c]
        for k in range(K):
            c = self.labels_of_all[k]
            self.sorted[self.ends[c]] = k
            self.ends[c] += 1
        for member in range(n_members):
            self.taken[member] = self.rows_of_member[member] = 0
        for i in range(self.n_classes):
            c = self.largest_first[i]
            left = self.ends[c] - (self.ends[c - 1] if c > 0 else 0)
            while left > 0:
                member = -1
                for other in range(n_members):
                    if self.taken[other] < room(K, other, n_members) and (
                        member < 0
                        or self.rows_of_member[other] < self.rows_of_member[member]
                    ):
                        member = other
                first = K * member // n_members + self.taken[member]
                some = min(left, room(K, member, n_members) - self.taken[member])
                memcpy(&places[first], &self.sorted[self.ends[c] - left],
                       some * sizeof(Py_ssize_t))
                self.taken[member] += some
                self.rows_of_member[member] += self.starts[c + 1] - self.starts[c]
                left -= some

    cdef void group(self, Py_ssize_t K) noexcept nogil:
        """Sort the examples by the class of their next words."""
        cdef Py_ssize_t i = 0, k, label
        cdef int other
        for k in range(K - 1, -1, -1):
            label = self.labels_here[k]
            self.nexts[k] = self.heads[label]
            self.heads[label] = <int>k
        for k in range(K):
            label = self.labels_here[k]
            other = self.heads[label]
            self.heads[label] = -1
            while other >= 0:
                self.examples[i] = other
                i += 1
                other = self.nexts[other]

    cdef void spread(self, Py_ssize_t K, char *logits) noexcept nogil:
        """Compute log P of all words, (K, n_words)."""
        cdef Py_ssize_t size = self.itemsize, k, c, first, n
        cdef double high, total, more
        cdef char *row
        self.rest.forward(K, logits)  # in the order of their rows
        for k in range(K):
            row = logits + k * self.n_words * size
            memcpy(self.row, row, self.n_words * size)
            self.loops.subtract(
                <char *>self.class_logits + k * self.n_classes * size, self.n_classes,
                self.classes.own.high[k] + log(self.classes.own.sum[k]))
            for c in range(self.n_classes):
                first, n = self.starts[c], self.starts[c + 1] - self.starts[c]
                memcpy(self.block, <char *>self.row + first * size, n * size)
                total = self.loops.exp_row(self.block, n, &high)
                if size == 4:
                    more = (<float *>self.class_logits)[k * self.n_classes + c]
                else:
                    more = (<double *>self.class_logits)[k * self.n_classes + c]
                self.loops.scatter(
                    <char *>self.row + first * size, n, more - high - log(total),
                    &self.order[first], row)

    cdef void backward(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Compute the gradient of the log-likelihood for z, and update visited rows.

        Equivalent to, with g = 0 off the classes met and the old E on the right::

            g[k, :C] = np.eye(C)[label] - softmax(y[k, :C])
            g[k, rows] = (rows == word) - softmax(y[k, rows])
            dz = g @ E
            E[:] = E + rate * g.T @ z - decay * E (but for the bias)

        A single example reads and writes each row once; several of one class use matrix
        products.
        """
        cdef Py_ssize_t size = self.itemsize, width = self.stride * self.itemsize
        cdef Py_ssize_t i = 0, j, first, n, some, label
        cdef char *g
        self.classes.combine(&self.classes.own, 1, K)
        self.classes.backward(K, solver, step)
        solver.decayed(step, self.E, 0, self.n_classes)
        solver.begin_rows(step, self.keep, self.n_outputs, self.stride)
        memset(self.dzs, 0, K * width)
        while i < K:
            label = self.labels_here[self.examples[i]]
            j = i + 1
            while j < K and self.labels_here[self.examples[j]] == label:
                j += 1
            first, n = self.n_classes + self.starts[label], self.starts[label + 1]
            n += self.n_classes
            if j > i + 1:
                self.loops.product(
                    False, False, j - i, self.stride, n - first, 1,
                    <char *>self.p + i * self.largest * size, self.largest,
                    self.row_of(first), self.stride, 0, <char *>self.dzs + i * width,
                    self.stride)
            g = <char *>self.p + i * self.largest * size
            while first < n:
                some = min(BLOCK, n - first)
                if j > i + 1:
                    solver.block(
                        step, self.E, first, some, g, self.largest,
                        <char *>self.zs + i * width, j - i, self.memory)
                else:
                    solver.rows(
                        step, self.E, first, some, 0, self.stride,
                        <char *>self.zs + i * width, g, self.keep,
                        <char *>self.dzs + i * width, self.memory)
                    solver.decayed(step, self.E, first, some)
                first += some
                g += some * size
            i = j

    cdef void end(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Compute dL/da and dL/dx, through the classes and through the words."""
        cdef Py_ssize_t h = self.at.n_hidden, size = self.itemsize, i, k
        cdef char *dz
        self.classes.end(K, solver, step)
        for i in range(K):
            k = self.examples[i]
            dz = <char *>self.dzs + i * self.stride * size
            self.loops.add(<char *>self.at.da + k * h * size, dz, h, 1)
            if self.direct:
                self.at.add_to_dx(k, dz + h * size)

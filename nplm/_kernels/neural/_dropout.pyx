"""Dropout: training sets random values of each example to 0.

The other values are scaled up, so that means stay the same (Srivastava et al., 2014).
A network that scores is made without dropout.

The mask of an example is a function of a seed, the number of examples seen before, and
the index of a value: no bit depends on threads, processes, or interruptions. Where
hidden units have a memory, the examples of a run have the mask of its first one (Gal and
Ghahramani, 2016), and x that of all equal contexts of a mini-batch, so that their
products are the same.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from nplm._kernels.neural._features cimport Features
from nplm._kernels.neural.hidden._hidden cimport Hidden
from nplm._kernels.neural._inputs cimport Activations, Inputs, context_code
from nplm._kernels.neural._loops cimport Scratch, round_up
from nplm._kernels.neural._solvers cimport Clock, Solver, Step, atomic_read


cdef class Mask:
    """Dropout mask: the factors, 0 or a scale, of n values of each example.

    Equivalent to ``reference.neural.mask``.

    Parameters
    ----------
    at : Activations
        Loops for this processor, and the maximum K.
    scratch : Scratch
        Memory of the thread.
    clock : Clock
        Clock that counts the examples seen.
    seed : ndarray of uint64, shape (1,)
        Read whenever a mask is drawn.
    n : int
        Number of values of an example.
    rate : float
        Dropout rate, in [0, 1), rounded to 65,536 steps.
    run_length : int
        Number of examples of a mini-batch that have one mask.
    """

    def __cinit__(
        self, Activations at, Scratch scratch, Clock clock, const uint64_t[::1] seed, *,
        Py_ssize_t n, double rate, Py_ssize_t run_length=1,
    ):
        if not 0 <= rate < 1 or len(seed) != 1 or run_length < 1:
            raise ValueError(f"a rate of {rate}, {len(seed)} seeds, and runs of "
                             f"{run_length}")
        self.run_length = run_length
        self.loops, self.itemsize, self.clock = at.loops, at.itemsize, clock
        self.at, self.seeds, self.seed = at, seed, &seed[0]
        self.threshold = min(<Py_ssize_t>(rate * 65536 + 0.5), 65535)
        self.scale = 65536.0 / (65536 - self.threshold)
        self.n, self.stride = n, round_up(n, 4)
        self.factors = scratch.numbers(at.batch_size * self.stride)
        self.of = <Py_ssize_t *>scratch.bytes(at.batch_size * sizeof(Py_ssize_t))

    cdef void draw(self, Py_ssize_t K) noexcept nogil:
        """Draw the factors of the next K examples."""
        cdef uint64_t t = <uint64_t>atomic_read(&self.clock.examples)
        cdef Py_ssize_t of_each = self.stride // 4, k, first, last = -1, n = 0
        cdef Py_ssize_t size = self.stride * self.itemsize
        for k in range(K):
            first = self.at.places[k] - self.at.places[k] % self.run_length
            if first != last:
                self.loops.mask(
                    <char *>self.factors + n * size, self.stride, self.seed[0],
                    (t + <uint64_t>first) * of_each, self.threshold, self.scale)
                last = first
                n += 1
            self.of[k] = n - 1

    cdef void draw_of(self, const int *contexts, Py_ssize_t n, Py_ssize_t K) noexcept nogil:
        """Draw the factors of K contexts: the same for equal ones.

        Equivalent to ``reference.neural.mask_of_contexts``.
        """
        cdef uint64_t t = <uint64_t>atomic_read(&self.clock.examples)
        cdef Py_ssize_t size = self.stride * self.itemsize, k
        for k in range(K):
            self.of[k] = k
            self.loops.mask(
                <char *>self.factors + k * size, self.stride, self.seed[0],
                context_code(contexts + k * n, n, t), self.threshold, self.scale)

    cdef void apply(self, void *values, Py_ssize_t K) noexcept nogil:
        """Compute ``values *= factors``, (K, n)."""
        cdef Py_ssize_t size = self.itemsize, k
        for k in range(K):
            self.loops.multiply(
                <char *>values + k * self.n * size,
                <char *>self.factors + self.of[k] * self.stride * size, self.n)


cdef class DroppedInputs(Inputs):
    """Inputs with dropout.

    No twin: a product with ``reference.neural.mask``'s.

    Parameters
    ----------
    features : Features
        Features of all words.
    inputs : Inputs
        Inputs, which compute x.
    mask : Mask
        Mask of x.
    """

    def __cinit__(self, Features features, Inputs inputs, Mask mask):
        self.inputs, self.mask = inputs, mask

    cdef void visit(self, Activations at, Py_ssize_t K, Solver solver) noexcept nogil:
        self.inputs.visit(at, K, solver)

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        self.inputs.forward(at, K)
        if self.mask.run_length > 1:
            self.mask.draw_of(at.contexts, at.n_context, K)
        else:
            self.mask.draw(K)
        self.mask.apply(at.x, K)

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        self.mask.apply(at.dx, K)
        self.inputs.backward(at, K, solver, step)


cdef class DroppedUnits(Hidden):
    """Hidden units, or their projection, with dropout.

    No twin: a product with ``reference.neural.mask``'s.

    Parameters
    ----------
    hidden : Hidden
        Hidden units, which compute a from x.
    inner : Activations
        Activations of `hidden`, which share x with the network but have an a of their
        own, without dropout.
    mask : Mask
        Mask of a.
    """

    def __cinit__(self, Hidden hidden, Activations inner, Mask mask):
        self.hidden, self.inner, self.mask = hidden, inner, mask

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        self.hidden.forward(self.inner, K)
        memcpy(at.a, self.inner.a, K * at.n_hidden * at.itemsize)
        self.mask.draw(K)
        self.mask.apply(at.a, K)

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        self.mask.apply(at.da, K)
        memcpy(self.inner.da, at.da, K * at.n_hidden * at.itemsize)
        self.hidden.backward(self.inner, K, solver, step)

"""The output units: where nearly all the arithmetic is (section 3.2).

A row of E holds all that belongs to one word, [U_j | W_j | b_j], and
z = [a | x | 1], so that equation (1) reads y = E z. The rows given may be a
shard of the vocabulary; the maximum and the sum of exponentials of its words
(`total_max`, `total_sum`) are all that shards need to share before the
backward pass, and `dzt` all they need to add up after it.

Words are taken a tile at a time: logits, their maximum and exponentials are
computed while the tile is in cache, and the exponentials are kept for the
backward pass (to compute them again would cost a third of the time).
"""

from cython cimport floating
from libc.math cimport INFINITY, exp
from libc.string cimport memset

from nplm._kernels.neural._elementwise cimport (
    exp_columns, exp_differences, exp_row, row_dots, row_updates, transpose,
)
from nplm._kernels.neural._products cimport (
    begin_batch, tile_backward, tile_logits, tile_slopes,
)
from nplm._kernels.neural._workspace cimport Workspace

cdef enum:
    PIECE = 1 << 18  # bytes of E


cdef void output_forward(
    floating *E, Py_ssize_t n_rows, Py_ssize_t n_outputs, const int *target,
    Py_ssize_t K, Workspace work, floating *logits,
) noexcept nogil:
    """Logits of K examples, and their maximum and sum of exponentials.

    Equivalent to, with ``y = z @ E.T`` (K, n_rows)::

        total_max = y.max(axis=1)
        total_sum = np.exp(y - total_max[:, None]).sum(axis=1)
        target_logit = y[np.arange(K), target]

    A target outside [0, n_rows) belongs to another shard: -inf. In training the
    exponentials (relative to their tile's maximum) stay in ``work.p``. In scoring
    `logits`, (K, n_rows), is filled with y unless it is NULL.
    """
    cdef Py_ssize_t columns = work.n_columns, stride = work.stride
    cdef Py_ssize_t tile, first, rows, k
    cdef floating *p
    cdef floating *high
    cdef floating *total
    cdef floating *factor = <floating *>work.factor
    for k in range(K):
        work.target_logit[k] = -INFINITY
        work.total_max[k] = -INFINITY
    if columns == 1:
        forward_one(E, n_rows, target, work)
        return
    begin_batch(<floating *>work.z, n_outputs, K, work)
    for tile in range(work.n_tiles):
        first = tile * work.tile_rows
        rows = min(work.tile_rows, n_rows - first)
        p = <floating *>work.p + (0 if work.scoring else first * columns)
        high = <floating *>work.tile_max + tile * columns
        total = <floating *>work.tile_sum + tile * columns
        tile_logits(E + first * stride, rows, n_outputs, p, K, work)
        if logits != NULL:
            if floating is float and work.loops != NULL:
                work.loops.transpose(p, columns, rows, K, logits + first, n_rows)
            else:
                transpose(p, columns, rows, K, logits + first, n_rows)
        for k in range(K):
            if first <= target[k] < first + rows:
                work.target_logit[k] = p[(target[k] - first) * columns + k]
        if floating is float and work.loops != NULL:
            work.loops.exp_columns(p, rows, columns, high, total)
        else:
            exp_columns(p, rows, columns, high, total)
        for k in range(K):
            work.total_max[k] = max(work.total_max[k], <double>high[k])
    for k in range(K):
        work.total_sum[k] = 0
    for tile in range(work.n_tiles):
        high = <floating *>work.tile_max + tile * columns
        total = <floating *>work.tile_sum + tile * columns
        if floating is float and work.loops != NULL:
            work.loops.exp_differences(high, work.total_max, columns, factor)
        else:
            exp_differences(high, work.total_max, columns, factor)
        for k in range(K):
            work.total_sum[k] += total[k] * <double>factor[k]


cdef void forward_one(
    floating *E, Py_ssize_t n_rows, const int *target, Workspace work,
) noexcept nogil:
    """`output_forward` to train on one example: each row of E is read once."""
    cdef floating *z = <floating *>work.z
    cdef floating *p = <floating *>work.p
    cdef floating *high = <floating *>work.tile_max
    if n_rows == 0:  # the shard of a process beyond the last word
        work.total_sum[0] = 0
        return
    # Threads that share the rows begin far apart: two that write to the same cache
    # lines at the same time are no faster than one.
    cdef Py_ssize_t start = work.start_row
    if floating is float and work.loops != NULL:
        work.loops.row_dots(
            E + start * work.stride, n_rows - start, work.stride, z, p + start)
        work.loops.row_dots(E, start, work.stride, z, p)
    else:
        row_dots(E, n_rows, work.stride, z, p)
    if 0 <= target[0] < n_rows:
        work.target_logit[0] = p[target[0]]
    if floating is float and work.loops != NULL:
        work.total_sum[0] = work.loops.exp_row(p, n_rows, high)
    else:
        work.total_sum[0] = exp_row(p, n_rows, high)
    work.total_max[0] = high[0]


cdef void output_backward(
    floating *E, Py_ssize_t n_rows, Py_ssize_t n_outputs, const int *target,
    Py_ssize_t K, Workspace work, floating rate, floating decay,
) noexcept nogil:
    """Gradient of the log-likelihood for z, and the update of the rows.

    ``work.softmax_max`` and ``softmax_sum`` are `output_forward`'s totals over
    all words. Equivalent to, with ``p`` the probabilities and the old E on the
    right::

        g = np.eye(n_rows)[target] - p
        dz = g @ E
        E[:] = E + rate * g.T @ z
        E[:, :-1] -= decay * (old E)[:, :-1]

    `decay` is the share of the weights, biases apart, lost to weight decay.
    """
    cdef Py_ssize_t columns = work.n_columns, stride = work.stride
    cdef Py_ssize_t tile, first, rows, k, i
    cdef floating *dzt = <floating *>work.dzt
    cdef floating *factor = <floating *>work.factor
    cdef floating *keep = <floating *>work.keep
    cdef floating *p
    cdef floating *high
    for i in range(stride):
        keep[i] = 1 - decay if i < n_outputs - 1 else 1
    memset(dzt, 0, stride * columns * sizeof(floating))
    if columns == 1:
        backward_one(E, n_rows, target, work, rate)
        return
    for tile in range(work.n_tiles):
        first = tile * work.tile_rows
        rows = min(work.tile_rows, n_rows - first)
        p = <floating *>work.p + first * columns
        high = <floating *>work.tile_max + tile * columns
        if floating is float and work.loops != NULL:
            work.loops.exp_differences(high, work.softmax_max, columns, factor)
        else:
            exp_differences(high, work.softmax_max, columns, factor)
        for k in range(K):
            factor[k] = <floating>(-factor[k] / work.softmax_sum[k])
        for k in range(K, columns):
            factor[k] = 0  # the columns that only fill up a vector
        tile_slopes(p, first, rows, target, K, work)
        tile_backward(
            E + first * stride, rows, n_outputs, p, K, rate, decay, work)


cdef void backward_one(
    floating *E, Py_ssize_t n_rows, const int *target, Workspace work, floating rate
) noexcept nogil:
    """`output_backward` for one example: each row of E is read and written once."""
    cdef floating *z = <floating *>work.z
    cdef floating *p = <floating *>work.p
    cdef floating *dz = <floating *>work.dzt
    cdef floating *keep = <floating *>work.keep
    cdef floating factor = <floating>(
        -exp((<floating *>work.tile_max)[0] - work.softmax_max[0])
        / work.softmax_sum[0])
    cdef Py_ssize_t j
    for j in range(n_rows):
        p[j] *= factor
    if 0 <= target[0] < n_rows:
        p[target[0]] += 1
    update_rows(E, 0, work.start_row, z, p, rate, keep, dz, work)
    update_rows(E, work.start_row, n_rows, z, p, rate, keep, dz, work)


cdef void update_rows(
    floating *E, Py_ssize_t first, Py_ssize_t stop, floating *z, floating *g,
    floating rate, floating *keep, floating *dz, Workspace work,
) noexcept nogil:
    """``dz += g @ E; E[:] = keep * E + rate * outer(g, z)`` for some of the rows.

    From the last to the first: the forward pass ended with the last, which are
    still in cache, and the next forward pass begins with the first. A piece of
    many rows is gone through forwards, as processors foresee it.
    """
    cdef Py_ssize_t piece = max(
        1, PIECE // (work.stride * <Py_ssize_t>sizeof(floating) * 8)) * 8
    cdef Py_ssize_t start
    while stop > first:
        start = max(first, stop - piece)
        if floating is float and work.loops != NULL:
            work.loops.row_updates(
                E + start * work.stride, stop - start, work.stride, z, g + start,
                rate, keep, dz)
        else:
            row_updates(E + start * work.stride, stop - start, work.stride, z,
                        g + start, rate, keep, dz)
        stop = start

"""Sizes of the processor's caches, and of the tiles of matrices.

These sizes affect the speed, but not one bit of any result.
"""

from libc.stdint cimport int64_t

cdef extern from "caches.h" nogil:
    int64_t cache_bytes(int level)

# The statistics of a softmax are of so many words at a time, on every processor.
CHUNK = 48
# Of a tile, whose slopes of 16 examples then fill three quarters of the nearest cache.
MOST_ROWS = 384
# Bytes of the caches of a processor that does not tell: small ones.
UNKNOWN = 1 << 15, 1 << 19, 1 << 23


class Caches:
    """Sizes of the data caches, in bytes.

    No twin: NumPy takes no notice of them.

    Parameters
    ----------
    level_1, level_2, level_3 : int
        One core's first two, and the last, which cores may share.
    """

    def __init__(self, level_1, level_2, level_3):
        self.level_1, self.level_2, self.level_3 = level_1, level_2, level_3

    def tile_rows(self, stride, columns, itemsize):
        """Output rows of a tile: what takes a quarter of the second cache.

        And whose logits take a quarter of what z and its gradients, (columns, stride),
        leave of it. Whole chunks of words.
        """
        left = max(0, self.level_2 - 2 * columns * stride * itemsize)
        rows = min(self.level_2 // stride, left // columns) // 4 // itemsize
        return min(max(1, rows // CHUNK) * CHUNK, MOST_ROWS)

    def holds(self, n_bytes):
        """Whether a matrix is likely to stay in the last cache from pass to pass."""
        return n_bytes <= max(self.level_2, self.level_3)


cdef object FOUND = Caches(
    *[cache_bytes(level + 1) or UNKNOWN[level] for level in range(3)])


def found():
    """Give the caches of this processor; the system was asked once.

    No twin: NumPy takes no notice of them.
    """
    return FOUND

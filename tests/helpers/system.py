"""What Windows has in place of POSIX's locks, for tests on other systems."""

import errno
import os
from types import SimpleNamespace


class Locks(SimpleNamespace):
    """Python's ``msvcrt``, as far as nplm uses it: a byte of a file has one holder."""

    LK_NBLCK = 2

    def __init__(self):
        self.holders = {}

    def locking(self, number, mode, n_bytes):
        assert mode == self.LK_NBLCK and n_bytes == 1
        place = os.fstat(number).st_ino, os.lseek(number, 0, os.SEEK_CUR)
        held = self.holders.setdefault(place, number)
        if held != number and is_open(held, place[0]):
            raise PermissionError(errno.EACCES, "Permission denied")
        self.holders[place] = number


def is_open(number, inode):
    try:
        return os.fstat(number).st_ino == inode
    except OSError:
        return False

"""Errors of a process or a system that is short of descriptors or memory.

A failed operation of this kind says nothing about the disk: the same operation succeeds when somebody lets go of some.
"""

from __future__ import annotations

import errno
from typing import Final, TypeGuard

_SHORTAGES: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS))
SHORTAGE_RETRY_MS: Final = 1_000  # how long an operation waits before it is tried again


def is_shortage(error: BaseException) -> TypeGuard[OSError]:
    """Return True if the operation failed for lack of descriptors or memory."""
    return isinstance(error, OSError) and error.errno in _SHORTAGES

"""Errors of a process or a system that is short of descriptors or memory.

Such an error does not mean that the disk has failed. The same operation succeeds once descriptors or memory are free
again.
"""

from __future__ import annotations

import errno
from typing import Final, TypeGuard

_SHORTAGES: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS))
SHORTAGE_RETRY_MS: Final = 1_000  # how long an operation waits before it is tried again


def is_shortage(error: BaseException) -> TypeGuard[OSError]:
    """Return True if the operation failed for lack of descriptors or memory."""
    return isinstance(error, OSError) and error.errno in _SHORTAGES

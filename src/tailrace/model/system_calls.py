"""The system calls that not every operating system has, and the variable that hides them.

A module with a fast path for Linux asks `lacks` once, when it is imported, and takes its portable path if the call is
missing. `TAILRACE_PORTABLE=1` in the environment hides all of these calls, so that the portable paths can be tested on
Linux. docs/decisions/0036-portable-loop.md has the list.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import Final

PORTABLE_VARIABLE: Final = "TAILRACE_PORTABLE"
IS_PORTABLE: Final = bool(os.environ.get(PORTABLE_VARIABLE))


def lacks(module: ModuleType, name: str) -> bool:
    """Return True if this system has no such call, or if the calls are hidden."""
    return IS_PORTABLE or not hasattr(module, name)

"""The names that the package `tailrace` offers. Each is loaded on first use, so `tailrace --help` loads no broker."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

_PLACES: Final = {
    "Broker": "tailrace.embedded.broker",
    "Cluster": "tailrace.embedded.cluster",
    "LocalSecurity": "tailrace.embedded.security",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'tailrace' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)

"""The interpreted form of a kernel module, which is the oracle for its compiled form."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace


def interpreted(module: ModuleType) -> ModuleType:
    """Load the `.py` file of a kernel module, beside the compiled one that an import gives."""
    assert module.__file__ is not None
    name = module.__name__.rpartition(".")[2]
    source = Path(module.__file__).parent / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"interpreted_{name}", source)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def together(*modules: ModuleType) -> SimpleNamespace:
    """Return the public names of several kernel modules in one namespace."""
    return SimpleNamespace(**{name: value for one in modules for name, value in vars(one).items() if name[0] != "_"})

"""The limits of the architecture, and the exceptions that were there when a limit was introduced.

`ratchets.toml` records each exception with its size of that time. A test fails if something exceeds its limit without
being recorded there, if a recorded exception has grown, or if a recorded exception no longer exceeds the limit.
After an improvement,

    python -m tests.architecture.ratchets

lowers the recorded numbers and removes what is within the limit; it never adds or raises anything. After recorded code
was moved to another module, `--record` writes down everything as it is now: look at the difference before committing.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.architecture import source

FILE = Path(__file__).with_name("ratchets.toml")


class Limit(NamedTuple):
    most: int
    measure: Callable[[], dict[str, int]]
    about: str


LIMITS = {
    "module_lines": Limit(400, source.module_lines, "lines of a module: a noun inside asks for its own file"),
    "function_lines": Limit(60, source.function_lines, "lines of a function"),
    "constructor_parameters": Limit(8, source.constructor_parameters, "parameters of a constructor"),
    "package_entries": Limit(15, source.package_entries, "modules and sub-packages of a package"),
    "outside_assignments": Limit(0, source.outside_assignments, "assignments to attributes of other modules' objects"),
}


def recorded() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text())


def complaints(exceptions: Mapping[str, int], limit: Limit) -> list[str]:
    """Return what is worse than recorded, and what is recorded without need."""
    found = limit.measure()
    worse = [
        f"{name} has {number}, allowed are {exceptions.get(name, limit.most)}"
        for name, number in found.items()
        if number > exceptions.get(name, limit.most)
    ]
    unneeded = [
        f"{name} is within the limit of {limit.most}: run `python -m tests.architecture.ratchets`"
        for name in exceptions
        if found.get(name, 0) <= limit.most
    ]
    return worse + unneeded


def module_cycles() -> list[list[str]]:
    return source.cycles(source.imports())


def is_within(cycle: list[str], known: list[list[str]]) -> bool:
    return any(set(cycle) <= set(one) for one in known)


def _written(known: Mapping[str, Any]) -> str:
    """Return the text of the file for those of the known exceptions that still are some."""
    lines = [
        "# Recorded exceptions to the limits in ratchets.py. The numbers may only fall and entries may only go:",
        "# `python -m tests.architecture.ratchets` does both after an improvement.",
        "",
        "# Modules that import each other.",
        "import_cycles = [",
    ]
    for cycle in module_cycles():
        if is_within(cycle, known["import_cycles"]):
            lines += ["    [", *(f'        "{name}",' for name in cycle), "    ],"]
    lines.append("]")
    for name, limit in LIMITS.items():
        lines += ["", f"# {limit.about[0].upper()}{limit.about[1:]}; the limit is {limit.most}.", f"[{name}]"]
        found = limit.measure()
        for entry, number in sorted(known[name].items()):
            if found.get(entry, 0) > limit.most:
                lines.append(f'"{entry}" = {min(number, found[entry])}')
    return "\n".join(lines) + "\n"


def _everything() -> dict[str, Any]:
    return {"import_cycles": module_cycles(), **{name: limit.measure() for name, limit in LIMITS.items()}}


if __name__ == "__main__":
    FILE.write_text(_written(_everything() if "--record" in sys.argv else recorded()))

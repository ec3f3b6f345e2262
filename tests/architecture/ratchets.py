"""The limits of the architecture, and the exceptions to them.

`ratchets.toml` records each exception with its size and the reason for it. A test fails if something exceeds its limit
without being recorded there, if a recorded exception has grown, has no reason, or no longer exceeds the limit. After an
improvement,

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


def complaints(exceptions: Mapping[str, Mapping[str, Any]], limit: Limit) -> list[str]:
    """Return what is worse than recorded, and what is recorded without need or without a reason."""
    found = limit.measure()
    allowed = {name: one["most"] for name, one in exceptions.items()}
    worse = [
        f"{name} has {number}, allowed are {allowed.get(name, limit.most)}"
        for name, number in found.items()
        if number > allowed.get(name, limit.most)
    ]
    unneeded = [
        f"{name} is within the limit of {limit.most}: run `python -m tests.architecture.ratchets`"
        for name in exceptions
        if found.get(name, 0) <= limit.most
    ]
    return worse + unneeded + [f"{name} has no reason" for name, one in exceptions.items() if not one["because"]]


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
        for entry, one in sorted(known[name].items()):
            if found.get(entry, 0) > limit.most:
                lines.append(f'"{entry}" = {{ most = {min(one["most"], found[entry])}, because = "{one["because"]}" }}')
    return "\n".join(lines) + "\n"


def _everything(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything as it is now, with the reasons that are recorded."""
    sections = {
        name: {
            entry: {"most": number, "because": known[name].get(entry, {}).get("because", "")}
            for entry, number in limit.measure().items()
        }
        for name, limit in LIMITS.items()
    }
    return {"import_cycles": module_cycles(), **sections}


if __name__ == "__main__":
    FILE.write_text(_written(_everything(recorded()) if "--record" in sys.argv else recorded()))

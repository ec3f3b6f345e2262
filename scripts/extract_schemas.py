#!/usr/bin/env python3
"""Extracts the facts of every Kafka message from Kafka's own jars into src/tailrace/protocol/.

    scripts/extract_schemas.py            write schemas/, index.json and messages.pyi again
    scripts/extract_schemas.py --check    print what would change, and fail if anything would

Facts are names, types, version ranges, tags, defaults, API keys and listeners. Kafka's descriptions are not copied.

Two releases are read. The current one defines each message. Kafka 4 dropped the oldest versions of many
APIs, so the last 3.9 release adds those: its ranges count for the versions that only it has, and fields that only it
has keep their position. A version that the old release marked as unstable was never released and is left out.

The jars come from `--jars DIRECTORY` (repeatable) or through Maven into a cache (`TAILRACE_KAFKA_CACHE`, by default
`~/.cache/tailrace`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

PROTOCOL = ROOT / "src" / "tailrace" / "protocol"
CURRENT = "4.3.1"
OLD = "3.9.1"

# The jar of each family of messages. Each coordinator numbers its own records, so each is a family.
JARS = {
    "kafka-clients": "data",
    "kafka-metadata": "metadata",
    "kafka-raft": "data",
    "kafka-group-coordinator": "group",
    "kafka-transaction-coordinator": "transaction",
    "kafka-share-coordinator": "share",
    "kafka-storage": "remote_log",
}
FAMILY_OF_TYPE = {"request": "api", "response": "api", "header": "header", "data": "data"}

Facts = dict[str, Any]


class JarUnavailable(Exception):
    """A jar of Kafka is not available here."""


# ---------------------------------------------------------------------------------------------------- reading the jars


def read_jar(jar: Path) -> Iterator[Facts]:
    with zipfile.ZipFile(jar) as archive:
        for name in sorted(archive.namelist()):
            if re.fullmatch(r"(common/)?(message|metadata)/\w+\.json", name):
                text = archive.read(name).decode()
                yield json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))


def fetch_jar(artifact: str, version: str, directories: Sequence[Path]) -> Path:
    """Return the jar from the given directories, the cache, or Maven."""
    name = f"{artifact}-{version}.jar"
    cache = Path(os.environ.get("TAILRACE_KAFKA_CACHE") or "~/.cache/tailrace").expanduser() / "schemas"
    for directory in (*directories, cache):
        if (directory / name).exists():
            return directory / name
    maven = shutil.which("mvn")
    if maven is None:
        raise JarUnavailable(f"{name} is not here, and there is no Maven (mvn) to fetch it")
    goal = ["dependency:copy", f"-Dartifact=org.apache.kafka:{artifact}:{version}", f"-DoutputDirectory={cache}"]
    done = subprocess.run([maven, "-q", "-B", *goal], capture_output=True, text=True)
    if done.returncode or not (cache / name).exists():
        raise JarUnavailable(f"Maven could not fetch {name}:\n{done.stdout}{done.stderr}")
    return cache / name


# ------------------------------------------------------------------------------------------------------ version ranges


class Range:
    """Versions low to high. High is None if the range is open, both are None if it is empty."""

    def __init__(self, low: int | None, high: int | None) -> None:
        self.low, self.high = low, high

    @classmethod
    def parse(cls, text: str | None) -> Range:
        if text is None or text in ("none", ""):
            return cls(None, None)
        if text.endswith("+"):
            return cls(int(text[:-1]), None)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def within(self, valid: Range) -> set[int]:
        assert valid.high is not None or valid.low is None
        if self.low is None or valid.low is None or valid.high is None:
            return set()
        top = valid.high if self.high is None else min(self.high, valid.high)
        return set(range(max(self.low, valid.low), top + 1))

    @classmethod
    def of(cls, versions: set[int], valid: Range) -> str | None:
        """Return the shortest text for versions: open at the top if they reach the newest valid one."""
        if not versions:
            return None
        low, high = min(versions), max(versions)
        if versions != set(range(low, high + 1)):
            raise SystemExit(f"versions {sorted(versions)} are not a range")
        return f"{low}+" if high == valid.high else str(low) if low == high else f"{low}-{high}"

    def __str__(self) -> str:
        return "none" if self.low is None else f"{self.low}" if self.low == self.high else f"{self.low}-{self.high}"


# ------------------------------------------------------------------------------------------------- one message's facts


def without_unstable(messages: dict[str, Facts]) -> dict[str, Facts]:
    """Return requests and responses without their newest version if the request is marked as unstable."""
    stable = dict(messages)
    for request in messages.values():
        if request.get("latestVersionUnstable"):
            for name in (request["name"], request["name"].removesuffix("Request") + "Response"):
                valid = Range.parse(messages[name]["validVersions"])
                rest = Range(None, None) if valid.low == valid.high else Range(valid.low, (valid.high or 0) - 1)
                stable[name] = {**messages[name], "validVersions": str(rest)}
    return stable


def default_of(field: Facts) -> Any:
    """Return the default as a JSON value, or Ellipsis if it is the type's own zero."""
    value, kind = field.get("default"), field["type"]
    if value is None:  # Kafka takes a bare null for no default; the text "null" means null
        return ...
    if value == "null":
        return None
    if kind == "bool":
        value = str(value).lower() == "true"
    elif re.fullmatch(r"u?int\d+", kind):
        value = int(str(value), 0)
    return value or ...


def field_facts(field: Facts, valid: Range) -> Facts:
    """Return one field as the release with the versions `valid` knows it, with ranges as sets of versions."""
    tagged = Range.parse(field.get("taggedVersions"))
    versions = Range.parse(field["versions"]) if "versions" in field else tagged
    facts: Facts = {
        "name": field["name"],
        "type": field["type"],
        "versions": versions.within(valid),
        "nullableVersions": Range.parse(field.get("nullableVersions")).within(valid) & versions.within(valid),
        "taggedVersions": tagged.within(valid),
        "flexibleVersions": field.get("flexibleVersions"),
        "tag": field.get("tag"),
        "ignorable": bool(field.get("ignorable")),
        "everywhere": versions.within(valid) == Range(valid.low, valid.high).within(valid),
        "entityType": field.get("entityType"),
    }
    # The fields of a struct are described for the versions that have the struct.
    used = Range(min(facts["versions"]), max(facts["versions"])) if facts["versions"] else Range(None, None)
    facts["fields"] = [field_facts(inner, used) for inner in field.get("fields", ())]
    if (default := default_of(field)) is not ...:
        facts["default"] = default
    return facts


def merge_fields(new: list[Facts], old: list[Facts], where: str) -> list[Facts]:
    """Return new fields in their order; a field that only `old` has follows the same predecessor as there."""
    merged = [dict(field) for field in new]
    previous = None
    for field in old:
        position = next((i for i, known in enumerate(merged) if known["name"] == field["name"]), None)
        if position is None and not field["versions"]:
            continue
        if position is None:
            after = 0 if previous is None else 1 + next(i for i, f in enumerate(merged) if f["name"] == previous)
            merged.insert(after, field)
        else:
            merged[position] = merge_field(merged[position], field, f"{where}.{field['name']}")
        previous = field["name"]
    return merged


def merge_field(new: Facts, old: Facts, where: str) -> Facts:
    for key in ("type", "flexibleVersions"):
        if new[key] != old[key]:
            raise SystemExit(f"{where} is {new[key]} now and was {old[key]}")
    if new.get("default", ...) != old.get("default", ...):
        raise SystemExit(f"{where} has a different default now")
    merged = {**new, "tag": old["tag"] if new["tag"] is None else new["tag"]}
    for key in ("versions", "nullableVersions", "taggedVersions"):
        merged[key] = new[key] | old[key]
    if new["ignorable"] != old["ignorable"]:
        # This matters only for versions without the field.
        if new["everywhere"] == old["everywhere"]:
            raise SystemExit(f"{where} is ignorable in one release only, and it matters")
        merged["ignorable"] = old["ignorable"] if new["everywhere"] else new["ignorable"]
    merged["fields"] = merge_fields(new["fields"], old["fields"], where)
    return merged


def merge_structs(new: Facts, old: Facts | None, old_only: Range) -> tuple[list[Facts], list[Facts]]:
    """Return the fields and the common structs of one message."""
    current = Range.parse(new["validVersions"])
    fields = [field_facts(field, current) for field in new.get("fields", ())]
    structs = {
        struct["name"]: [field_facts(field, current) for field in struct["fields"]]
        for struct in new.get("commonStructs", ())
    }
    if old is not None and old_only.low is not None:
        old_fields = [field_facts(field, old_only) for field in old["fields"]]
        fields = merge_fields(fields, old_fields, new["name"])
        for struct in old.get("commonStructs", ()):
            inner = [field_facts(field, old_only) for field in struct["fields"]]
            if any(used_in(fields, struct["name"])):
                structs[struct["name"]] = merge_fields(structs.get(struct["name"], []), inner, struct["name"])
    return fields, [{"name": name, "fields": inner} for name, inner in structs.items()]


def used_in(fields: list[Facts], struct: str) -> Iterator[bool]:
    for field in fields:
        yield field["type"].removeprefix("[]") == struct
        yield from used_in(field["fields"], struct)


def compact_field(field: Facts, valid: Range) -> Facts:
    """Return a field as it is stored: ranges as text, without defaults that go without saying."""
    facts: Facts = {"name": field["name"], "type": field["type"], "versions": Range.of(field["versions"], valid)}
    for key in ("nullableVersions", "taggedVersions"):
        if field[key]:
            facts[key] = Range.of(field[key], valid)
    for key in ("tag", "flexibleVersions", "entityType"):
        if field[key] is not None:
            facts[key] = field[key]
    if "default" in field:
        facts["default"] = field["default"]
    if field["ignorable"]:
        facts["ignorable"] = True
    inner = [compact_field(one, valid) for one in field["fields"] if one["versions"]]
    if inner:
        facts["fields"] = inner
    return facts


def compact_message(new: Facts, old: Facts | None) -> Facts:
    current = Range.parse(new["validVersions"])
    before = Range(None, None) if old is None else Range.parse(old["validVersions"])
    lows = [r.low for r in (current, before) if r.low is not None]
    highs = [r.high for r in (current, before) if r.high is not None]
    valid = Range(min(lows), max(highs))
    gone = before.within(valid) - current.within(valid)
    if current.within(valid) | gone != set(range(min(lows), max(highs) + 1)):
        raise SystemExit(f"{new['name']}: {current} and {before} leave a gap")
    old_only = Range(min(gone), max(gone)) if gone else Range(None, None)
    fields, structs = merge_structs(new, old, old_only)
    flexible = new.get("flexibleVersions") if current.low is not None else old["flexibleVersions"] if old else None
    facts: Facts = {"name": new["name"], "type": new["type"]}
    if "apiKey" in new:
        facts["apiKey"] = new["apiKey"]
    if listeners := new.get("listeners"):
        facts["listeners"] = listeners
    facts["validVersions"] = str(valid)
    if gone:
        facts["removedVersions"] = str(old_only)
    if new.get("latestVersionUnstable"):
        facts["latestVersionUnstable"] = True
    facts["flexibleVersions"] = flexible or "none"
    facts["fields"] = [compact_field(field, valid) for field in fields if field["versions"]]
    if structs:
        facts["commonStructs"] = [
            {"name": struct["name"], "fields": [compact_field(f, valid) for f in struct["fields"] if f["versions"]]}
            for struct in structs
        ]
    return facts


def collect(directories: Sequence[Path]) -> dict[str, Facts]:
    """Return every message by its path under schemas/, as FAMILY/NAME."""
    old = {message["name"]: message for message in read_jar(fetch_jar("kafka-clients", OLD, directories))}
    old = without_unstable(old)
    collected: dict[str, Facts] = {}
    for artifact, family in JARS.items():
        for message in read_jar(fetch_jar(artifact, CURRENT, directories)):
            place = f"{FAMILY_OF_TYPE.get(message['type'], family)}/{message['name']}"
            assert place not in collected, place
            collected[place] = compact_message(message, old.get(message["name"]))
    return dict(sorted(collected.items()))


# ------------------------------------------------------------------------------------------------------- writing files


def render_fields(fields: list[Facts], indent: str) -> str:
    lines = []
    for field in fields:
        inner = field.get("fields")
        line = json.dumps({key: value for key, value in field.items() if key != "fields"})
        if inner:
            line = f'{line[:-1]}, "fields": [\n{render_fields(inner, indent + "  ")}\n{indent}]}}'
        lines.append(indent + line)
    return ",\n".join(lines)


def render_schema(facts: Facts) -> str:
    """Return JSON with one line per field."""
    lines = []
    for key, value in facts.items():
        if key == "fields":
            text = f"[\n{render_fields(value, '  ')}\n]" if value else "[]"
        elif key == "commonStructs":
            structs = [
                f' {{"name": "{one["name"]}", "fields": [\n{render_fields(one["fields"], "  ")}\n ]}}' for one in value
            ]
            text = "[\n" + ",\n".join(structs) + "\n]"
        else:
            text = json.dumps(value)
        lines.append(f'"{key}": {text}')
    rendered = "{\n" + ",\n".join(lines) + "\n}\n"
    assert json.loads(rendered) == facts
    return rendered


def render_index(messages: dict[str, Facts]) -> str:
    """Return the index that is needed before any schema is opened: families, and each API's key, versions and
    listeners.
    """
    families: dict[str, list[str]] = {}
    records: dict[str, dict[str, dict[str, str]]] = {}
    apis: dict[int, Facts] = {}
    for place, facts in messages.items():
        family, name = place.split("/")
        families.setdefault(family, []).append(name)
        if facts["type"] == "request":
            row = {"name": name.removesuffix("Request")}
            for key in ("validVersions", "removedVersions", "latestVersionUnstable", "flexibleVersions", "listeners"):
                if key in facts:
                    row[key] = facts[key]
            apis[facts["apiKey"]] = row
        elif "apiKey" in facts and facts["type"] != "response":
            kind = facts["type"].removeprefix("coordinator-")
            records.setdefault(family, {}).setdefault(kind, {})[facts["apiKey"]] = name
    parts = []
    rows = [f'  "{key}": {json.dumps(apis[key])}' for key in sorted(apis)]
    parts.append('"apis": {\n' + ",\n".join(rows) + "\n}")
    rows = [
        f'  "{family}/{kind}": {json.dumps({str(key): names[key] for key in sorted(names)})}'
        for family, kinds in sorted(records.items())
        for kind, names in sorted(kinds.items())
    ]
    parts.append('"records": {\n' + ",\n".join(rows) + "\n}")
    rows = [f'  "{family}": {json.dumps(sorted(names))}' for family, names in sorted(families.items())]
    parts.append('"families": {\n' + ",\n".join(rows) + "\n}")
    rendered = "{\n" + ",\n".join(parts) + "\n}\n"
    json.loads(rendered)
    return rendered


PYTHON_TYPES = {
    "bool": "bool", "float64": "float", "string": "str", "bytes": "bytes", "uuid": "bytes", "records": "Records",
}  # fmt: skip


def python_type(field: Facts, message: str) -> str:
    kind = field["type"]
    element = kind.removeprefix("[]")
    name = PYTHON_TYPES.get(element) or ("int" if re.fullmatch(r"u?int\d+", element) else f"{message}.{element}")
    if kind.startswith("[]"):
        name = f"list[{name}]"
    nullable = "nullableVersions" in field or kind == "records" or field.get("default", ...) is None
    return f"{name} | None" if nullable else name


def structs_inside(fields: list[Facts]) -> Iterator[tuple[str, list[Facts]]]:
    for field in fields:
        if field.get("fields"):
            yield field["type"].removeprefix("[]"), field["fields"]
            yield from structs_inside(field["fields"])


def render_stub_class(name: str, fields: list[Facts], message: str, base: str, indent: str) -> Iterator[str]:
    from tailrace.protocol.codegen.schema import attribute_name

    typed = [f"{attribute_name(field['name'])}: {python_type(field, message)}" for field in fields]
    yield f"{indent}class {name}({base}):"
    for line in typed:
        yield f"{indent}    {line}"
    yield f"{indent}    def __init__("
    yield f"{indent}        self,{' *,' if typed else ''}"
    for line in typed:
        yield f"{indent}        {line} = ...,"
    yield f"{indent}    ) -> None: ..."


def render_stubs(messages: dict[str, Facts]) -> str:
    """Return types for messages.py, whose classes are created on first use."""
    lines = [
        "# Written by scripts/extract_schemas.py from the schemas; do not edit.",
        "# ruff: noqa",
        "# fmt: off",
        "from tailrace.protocol.message import Message, Records, Struct",
        "",
    ]
    for place in sorted(messages, key=lambda place: place.split("/")[1]):
        facts = messages[place]
        name = facts["name"]
        lines += render_stub_class(name, facts["fields"], name, "Message", "")
        common = [(struct["name"], struct["fields"]) for struct in facts.get("commonStructs", [])]
        inside = [one for _, fields in common for one in structs_inside(fields)]
        for struct, fields in [*common, *inside, *structs_inside(facts["fields"])]:
            lines += render_stub_class(struct, fields, name, "Struct", "    ")
        lines.append("")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if anything would change")
    parser.add_argument("--jars", action="append", type=Path, default=[], metavar="DIRECTORY", help="where jars lie")
    options = parser.parse_args(arguments)

    try:
        messages = collect(options.jars)
    except JarUnavailable as why:
        parser.error(str(why))
    wanted = {Path("schemas") / f"{place}.json": render_schema(facts) for place, facts in messages.items()}
    wanted[Path("schemas/index.json")] = render_index(messages)
    wanted[Path("messages.pyi")] = render_stubs(messages)
    present = {path.relative_to(PROTOCOL) for path in (PROTOCOL / "schemas").rglob("*.json")}

    changes = [f"{path} is no longer needed" for path in sorted(present - set(wanted))]
    for path, text in wanted.items():
        target = PROTOCOL / path
        if not target.exists() or target.read_text() != text:
            changes.append(f"{path} {'differs' if target.exists() else 'is missing'}")
            if not options.check:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
    if not options.check:
        for path in present - set(wanted):
            (PROTOCOL / path).unlink()
    print("\n".join([*changes, f"{len(messages)} messages, {len(changes)} changes"]))
    return 1 if options.check and changes else 0


if __name__ == "__main__":
    sys.exit(main())

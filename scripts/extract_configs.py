#!/usr/bin/env python3
"""Extracts the facts of every configuration key of Kafka's broker into src/tailrace/model/configs/.

    python -m scripts.extract_configs            write kafka_configs.json again
    python -m scripts.extract_configs --check    fail if the file would change

Facts are names, types, defaults, allowed values, how a key can be changed while a broker runs, and the broker key that
is the default of a topic's or group's key. Kafka's descriptions are not copied. `ConfigFacts.java` reads the facts from
Kafka's own classes, so Java is needed, and Maven the first time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.kafka_install import KafkaInstallation, KafkaUnavailable, kafka_installation

SCRIPTS = Path(__file__).resolve().parent
TARGET = SCRIPTS.parent / "src" / "tailrace" / "model" / "configs" / "kafka_configs.json"


def ask_kafka(installation: KafkaInstallation) -> dict[str, Any]:
    command = installation.command(str(SCRIPTS / "ConfigFacts.java"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"Kafka's classes could not be read:\n{done.stderr}")
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def render(facts: dict[str, Any]) -> str:
    """Return one line per key, so that a difference shows which key changed."""
    parts = []
    for section, keys in facts.items():
        lines = [f"{json.dumps(name)}: {json.dumps(about)}" for name, about in keys.items()]
        parts.append(f"{json.dumps(section)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if anything would change")
    options = parser.parse_args(arguments)
    try:
        facts = ask_kafka(kafka_installation())
    except KafkaUnavailable as why:
        parser.error(str(why))
    text = render(facts)
    changed = not TARGET.exists() or TARGET.read_text() != text
    if changed and not options.check:
        TARGET.write_text(text)
    count = sum(len(keys) for keys in facts.values())
    print(f"{count} keys, {'something has changed' if changed else 'no change'}")
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())

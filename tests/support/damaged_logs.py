"""Damaged data directories, of Kafka and of Tailrace. A seed chooses the damage of each file."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from tests.support.command import write_directory
from tests.support.golden import golden, golden_names


def all_logs(target: Path) -> Path:
    """Create one directory with every golden partition and with partitions that our own log wrote."""
    write_directory(target, clean=False)
    for name in golden_names("partition"):
        folder = golden(name).unpack(target / ".unpacked" / name)
        own = next((path for path in folder.iterdir() if path.is_dir()), folder)
        shutil.move(own, target / f"{name.replace('.', '-')}-0")
    for name in golden_names("data_dir"):
        for folder in golden(name).unpack(target / ".unpacked" / name).iterdir():
            if folder.is_dir():
                shutil.move(folder, target / f"{name}.{folder.name}")
    shutil.rmtree(target / ".unpacked")
    return target


def damage(directory: Path, seed: int, *, share: float = 0.3) -> None:
    """Flip bits in some of the files, or truncate, empty, double or remove them."""
    dice = random.Random(seed)
    for path in sorted(directory.glob("*-*/*")):
        if path.is_dir() or dice.random() > share:
            continue
        data = bytearray(path.read_bytes())
        way = dice.choice(("flip", "flip", "flip", "cut", "cut", "remove", "double", "zeros", "rename"))
        if way == "flip" and data:
            for _ in range(dice.randint(1, 3)):
                data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        elif way == "cut":
            data = data[: dice.randint(0, len(data))]
        elif way == "double":
            data += data[: dice.randint(0, len(data))]
        elif way == "zeros":
            data += bytes(dice.randint(1, 200))
        elif way == "rename" and path.name[:20].isdigit():
            path = path.rename(path.with_name(f"{int(path.name[:20]) + dice.choice((1, 7)):020d}{path.name[20:]}"))
        elif way == "remove":
            path.unlink()
            continue
        path.write_bytes(data)

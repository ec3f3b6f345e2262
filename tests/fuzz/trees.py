"""Trees: directories as inputs. A tree is names and bytes, packed one behind the other."""

from __future__ import annotations

import random
import struct
from pathlib import Path

from tests.fuzz.bytes_mutator import damage
from tests.fuzz.records_mutator import damage_records, repaired

TREE_BYTES_MAX = 100_000
_SIZES = struct.Struct(">HI")


def pack_tree(tree: dict[str, bytes]) -> bytes:
    packed = bytearray()
    for name, data in tree.items():
        encoded = name.encode()
        packed += _SIZES.pack(len(encoded), len(data)) + encoded + data
    return bytes(packed)


def unpack_tree(packed: bytes) -> dict[str, bytes]:
    """Unpack a tree. Incomplete bytes end it early; invalid names are left out."""
    tree: dict[str, bytes] = {}
    position = 0
    while position + _SIZES.size <= len(packed):
        name_size, size = _SIZES.unpack_from(packed, position)
        position += _SIZES.size
        name = packed[position : position + name_size].decode("utf-8", "replace")
        position += name_size
        parts = name.split("/")
        is_usable = all(parts) and not {".", ".."} & set(parts) and len(parts) < 4 and "\0" not in name
        if is_usable and not any(other.startswith(f"{name}/") or name.startswith(f"{other}/") for other in tree):
            tree[name] = packed[position : position + size]
        position += size
    return tree


def tree_pieces(packed: bytes) -> list[bytes]:
    return [pack_tree({name: data}) for name, data in unpack_tree(packed).items()]


def read_tree(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def mutate_tree(packed: bytes, dice: random.Random, others: list[bytes]) -> bytes:
    """Damage, remove, exchange or rename files."""
    tree = unpack_tree(packed)
    if not tree:
        return dice.choice(others)
    for _ in range(dice.choice((1, 1, 2, 3))):
        names = sorted(tree)
        if not names:
            break
        name = dice.choice(names)
        choice = dice.random()
        if choice < 0.07:
            del tree[name]
        elif choice < 0.14:
            tree[dice.choice(names)] = tree[name]
        elif choice < 0.19:
            renamed = name.rpartition("/")[0] + "/" + dice.choice(_NAMES)
            tree[renamed.lstrip("/")] = tree.pop(name)
        elif choice < 0.24:
            tree[name] += bytes(dice.choice((1, 12, 100, 4096)))
        elif choice < 0.28:
            foreign = unpack_tree(dice.choice(others))
            tree.update({one: data for one, data in foreign.items() if one.endswith(name[-6:])})
        elif name.endswith((".log", ".checkpoint")) and choice < 0.9:
            tree[name] = _damage_log(tree[name], dice)
        else:
            tree[name] = damage(tree[name], dice, dice.choice((1, 1, 3)))
    mutated = pack_tree(tree)
    return mutated if len(mutated) <= TREE_BYTES_MAX else packed


_NAMES = (
    "00000000000000000000.log", "00000000000000000003.log", "00000000000000000000.index", "00000000000000000000.swap",
    "00000000000000000000.log.swap", "00000000000000000000.log.cleaned", "00000000000000000000.log.deleted",
    "00000000000000000010.snapshot", "99999999999999999999.log", "01223372036854775807.log", "x.log", "-1.snapshot",
    "00000000000000000000.timeindex", "00000000000000000000.txnindex", "00000000000000000000.index.swap",
    "leader-epoch-checkpoint", "partition.metadata", "00000000000000000009-0000000001.checkpoint", "quorum-state",
)  # fmt: skip


def _damage_log(data: bytes, dice: random.Random) -> bytes:
    """Damage one batch, and mostly correct its checksum."""
    starts = []
    position = 0
    while position + 17 <= len(data):
        starts.append(position)
        (size,) = struct.unpack_from(">i", data, position + 8)
        if size <= 0:
            break
        position += 12 + size
    if not starts:
        return damage(data, dice)
    at = dice.randrange(len(starts))
    end = starts[at + 1] if at + 1 < len(starts) else len(data)
    batch = data[starts[at] : end]
    match dice.randrange(6):
        case 0:
            batch = b""
        case 1:
            batch = batch[: dice.randrange(len(batch) + 1)]
        case 2 if len(batch) >= 8:
            batch = struct.pack(">q", dice.choice((0, 1, 5, 2**31, 2**40, 2**63 - 1, -1))) + batch[8:]
        case 3:
            batch = repaired(damage(batch, dice))
        case _:
            batch = damage_records(batch, dice)
    return data[: starts[at]] + batch + data[end:]

"""Hill climbing: change the worst request of an API a little, and keep what is worse."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tailrace.broker.requests.api_table import API_TABLE, TELEMETRY_TABLE
from tailrace.protocol.codegen.schema import Field, StructSchema
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.registry import request_class
from tests.costs.candidates import arrays_of
from tests.costs.measure import Cost
from tests.costs.recipe import SIZE_MAX, Recipe
from tests.costs.values import Kind

_NUMBERS = (-2, -1, 0, 1, 2, 3, 4, 8, 32, 127)
_LARGE = (10_000, 2**31 - 1)
_TEXTS = ("", "t-000", "classic-00", "consumer-00", "share-00", "streams-00", "transaction-00", "x" * 249, "x" * 30_000)


def climb(recipe: Recipe, cost: Cost, attempt: Callable[[Recipe], Cost], until: float, seed: int) -> None:
    """Change the recipe until `until`; whatever is worse becomes the recipe to change next."""
    dice = random.Random(seed)
    seen = {recipe}
    while time.monotonic() < until:
        other = recipe
        for _ in range(dice.choice((1, 1, 2, 3))):
            other = changed(other, dice)
        if other in seen:
            continue
        seen.add(other)
        try:
            found = attempt(other)
        except ProtocolError:  # this version cannot carry these values
            continue
        if found.badness > cost.badness:
            recipe, cost = other, found


def changed(recipe: Recipe, dice: random.Random) -> Recipe:
    """Return the recipe with one change."""
    row = (API_TABLE | TELEMETRY_TABLE)[recipe.api]
    schema = request_class(recipe.api).SCHEMA
    recipe = replace(recipe, note="")
    match dice.randrange(8):
        case 0:
            return replace(recipe, version=dice.randint(row.min_version, row.max_version))
        case 1:
            return replace(recipe, kind=dice.choice(list(Kind)))
        case 2:
            paths = [path for path, _ in arrays_of(schema, recipe.version)]
            return replace(recipe, fill=dice.choice(["", *paths]))
        case 3:
            return replace(recipe, inner=dice.choice((0, 1, 2, 10, 100)))
        case 4:
            return replace(recipe, outer=dice.choice((1, 1, 2, 20, 200)))
        case 5:
            return replace(recipe, tags=dice.choice((0, 0, 1, 2, 20)))
        case 6:
            return replace(recipe, size=dice.choice((SIZE_MAX, SIZE_MAX, SIZE_MAX // 2, 100_000, 10_000)))
        case _:
            return _with_other_value(recipe, schema, dice)


def _with_other_value(recipe: Recipe, schema: StructSchema, dice: random.Random) -> Recipe:
    scalars = list(_scalars(schema, recipe.version))
    if not scalars:
        return recipe
    path, field = dice.choice(scalars)
    if recipe.version in field.nullable and dice.random() < 0.3:
        return replace(recipe, nulls=(*recipe.nulls, path))
    match field.element:
        case "bool":
            return recipe.with_value(path, dice.random() < 0.5)
        case "string":
            return recipe.with_value(path, dice.choice(_TEXTS))
        case "uuid":
            return recipe.with_value(path, ("topic_id", dice.randrange(200)))
        case "int8":
            return recipe.with_value(path, dice.choice(_NUMBERS))
        case "int16" | "int32" | "int64" | "uint16" | "uint32":
            low = 0 if field.element.startswith("u") else -2
            high = 32_767 if field.element.endswith("16") else 2**31 - 1
            return recipe.with_value(path, min(max(dice.choice((*_NUMBERS, *_LARGE)), low), high))
        case "bytes":
            return recipe.with_value(path, bytes(dice.choice((0, 10, 1000))))
    return recipe


def _scalars(schema: StructSchema, version: int, prefix: str = "") -> Iterator[tuple[str, Field]]:
    for field in schema.fields:
        if version in field.versions:
            if field.struct is not None:
                yield from _scalars(field.struct, version, f"{prefix}{field.attribute}.")
            elif not field.is_array:
                yield prefix + field.attribute, field

"""Makes the changes of `evolve` in Iceberg tables (pyiceberg) and Delta tables (delta-rs).

Each change is one commit of the table, before any commit of rows. A commit that loses a race with another program is
planned again from the table's new schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.spark_session import first_sentence
from tailrace.spark.typed.evolution.evolve import Evolution, Refusal, Widen, evolve

_ATTEMPTS = 5


def evolve_iceberg(load: Callable[[], Any], schema: Any, name: str) -> Any:
    """Change a table of pyiceberg for rows of a pyarrow.Schema. Return the schema to write the rows with."""
    from pyiceberg.exceptions import CommitFailedException

    problem: Exception | None = None
    for _ in range(_ATTEMPTS):
        table = load()
        found = _checked(evolve(iceberg_schema(table), schema), name)
        if not found.changes:
            return found.row_schema
        try:
            with table.update_schema() as update:
                update.union_by_name(found.table_schema)
            return found.row_schema
        except CommitFailedException as error:
            problem = error
        except Exception as error:
            raise JobError(f"the schema of table {name} cannot be changed: {first_sentence(error)}") from error
    raise JobError(f"the schema of table {name} cannot be changed ({_ATTEMPTS} attempts): {problem}")


def iceberg_schema(table: Any) -> Any:
    """Return the schema of a table of pyiceberg as a pyarrow.Schema."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return schema_to_pyarrow(table.schema(), include_field_ids=False)


def evolve_delta(load: Callable[[], Any], schema: Any, name: str, storage_options: Mapping[str, str]) -> Any:
    """Change a table of delta-rs for rows of a pyarrow.Schema. Return the schema to write the rows with."""
    import deltalake

    problem: Exception | None = None
    for _ in range(_ATTEMPTS):
        found = _checked(evolve(delta_schema(load()), schema), name)
        widened = [change for change in found.changes if isinstance(change, Widen)]
        if widened:
            raise JobError(
                f"column {'.'.join(widened[0].path)} of table {name} would have to become {widened[0].type}, and "
                "delta-rs cannot change the types of columns; export into another table"
            )
        if not found.changes:
            return found.row_schema
        if problem is not None and not isinstance(problem, deltalake.exceptions.CommitFailedError):
            raise JobError(f"the schema of table {name} cannot be changed: {first_sentence(problem)}") from problem
        try:
            deltalake.write_deltalake(
                load(),
                found.row_schema.empty_table(),
                mode="append",
                schema_mode="merge",
                storage_options=dict(storage_options) or None,
            )
            problem = None
        except Exception as error:
            problem = error
    raise JobError(f"the schema of table {name} cannot be changed ({_ATTEMPTS} attempts): {problem or 'no effect'}")


def delta_schema(table: Any) -> Any:
    """Return the schema of a table of delta-rs as a pyarrow.Schema."""
    return pa.schema(table.schema().to_arrow())


def _checked(found: Evolution | Refusal, name: str) -> Evolution:
    if isinstance(found, Refusal):
        raise JobError(f"table {name} cannot take these rows: {found}")
    return found

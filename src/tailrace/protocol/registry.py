"""Registry: message classes by name, by API key, and by the number of a record type.

A class is made from its schema on first use. Its readers and writers are made when a version is first used. Importing
the package is therefore cheap.
"""

from __future__ import annotations

from functools import cache

from tailrace.protocol.api_keys import api
from tailrace.protocol.codegen.schema import index, load_schema
from tailrace.protocol.message import Message, make_message_class


@cache
def message_class(name: str) -> type[Message]:
    """Return the class of a message by its name in Kafka's schemas. Raise UnsupportedVersion if there is none."""
    return make_message_class(load_schema(name), module="tailrace.protocol.messages")


@cache
def request_class(api_key: int) -> type[Message]:
    return message_class(f"{api(api_key).name}Request")


@cache
def response_class(api_key: int) -> type[Message]:
    return message_class(f"{api(api_key).name}Response")


def record_class(family: str, kind: str, number: int) -> type[Message] | None:
    """Return the class of a numbered record, or None if the number is unknown.

    Families and their kinds: metadata/metadata, remote_log/metadata, and group, transaction and share with key and
    value.
    """
    name = index()["records"][f"{family}/{kind}"].get(str(number))
    return None if name is None else message_class(name)

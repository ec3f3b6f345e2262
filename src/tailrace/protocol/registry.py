"""Registry: message classes by name, by API key, and by the number of a record type.

A class is made from its schema when it is first asked for, and its readers and writers when a version is first used,
so that importing the package costs next to nothing.
"""

from __future__ import annotations

from functools import cache

from tailrace.protocol.api_keys import api
from tailrace.protocol.codegen.schema import index, load_schema
from tailrace.protocol.message import Message, make_message_class


@cache
def message_class(name: str) -> type[Message]:
    """The class of the message called so in Kafka's schemas; UnsupportedVersion where there is none."""
    return make_message_class(load_schema(name), module="tailrace.protocol.messages")


@cache
def request_class(api_key: int) -> type[Message]:
    return message_class(f"{api(api_key).name}Request")


@cache
def response_class(api_key: int) -> type[Message]:
    return message_class(f"{api(api_key).name}Response")


def record_class(family: str, kind: str, number: int) -> type[Message] | None:
    """The class of a numbered record, or None where the number stands for none.

    Families and their kinds: metadata/metadata, remote_log/metadata, and group, transaction and share with key and
    value.
    """
    name = index()["records"][f"{family}/{kind}"].get(str(number))
    return None if name is None else message_class(name)

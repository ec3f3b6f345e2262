"""Registry: message classes by name, and by API key.

A class is made from its schema when it is first asked for, and its readers and writers when a version is first used,
so that importing the package costs next to nothing.
"""

from __future__ import annotations

from functools import cache

from tailrace.protocol.errors import UnsupportedVersion
from tailrace.protocol.message import Message, make_message_class
from tailrace.protocol.schema import index, load_schema


@cache
def message_class(name: str) -> type[Message]:
    """The class of the message called so in Kafka's schemas; UnsupportedVersion where there is none."""
    return make_message_class(load_schema(name), module="tailrace.protocol.messages")


def api_name(api_key: int) -> str:
    """Kafka's name of an API: 1 is Fetch. UnsupportedVersion for a number that stands for none."""
    facts = index()["apis"].get(str(api_key))
    if facts is None:
        raise UnsupportedVersion(f"there is no API with key {api_key}")
    name: str = facts["name"]
    return name


@cache
def request_class(api_key: int) -> type[Message]:
    return message_class(f"{api_name(api_key)}Request")


@cache
def response_class(api_key: int) -> type[Message]:
    return message_class(f"{api_name(api_key)}Response")

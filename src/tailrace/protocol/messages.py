"""Every message by its name: `from tailrace.protocol.messages import FetchRequest`.

Classes are made on first use. `messages.pyi` declares them for type checkers and editors.
"""

from __future__ import annotations

from tailrace.protocol.codegen.schema import message_names
from tailrace.protocol.errors import UnsupportedVersion
from tailrace.protocol.message import Message
from tailrace.protocol.registry import message_class


def __getattr__(name: str) -> type[Message]:
    try:
        made = message_class(name)
    except UnsupportedVersion as error:
        raise AttributeError(str(error)) from None
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return [*globals(), *message_names()]

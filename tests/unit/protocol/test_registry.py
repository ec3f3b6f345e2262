"""Looking classes up, and not paying for those that nobody asks for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tailrace.protocol import messages
from tailrace.protocol.codegen.schema import message_names
from tailrace.protocol.errors import UnsupportedVersion
from tailrace.protocol.registry import message_class, record_class, request_class, response_class


def test_messages_are_found_by_name_and_by_key() -> None:
    assert message_class("FetchRequest") is messages.FetchRequest is request_class(1)
    assert response_class(1) is messages.FetchResponse
    assert record_class("metadata", "metadata", 3) is messages.PartitionRecord
    assert record_class("group", "key", 1) is messages.OffsetCommitKey
    assert record_class("group", "value", 1) is messages.OffsetCommitValue
    assert record_class("group", "key", 99) is None


def test_unknown_messages_are_refused() -> None:
    with pytest.raises(UnsupportedVersion):
        message_class("Nonsense")
    with pytest.raises(UnsupportedVersion):
        request_class(9999)
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = messages.Nonsense  # type: ignore[attr-defined]
    assert set(message_names()) <= set(dir(messages))


def test_importing_loads_no_schema_and_no_compiler() -> None:
    program = (
        "import sys, tailrace.protocol.messages as m\n"
        "from tailrace.protocol.codegen import schema\n"
        "assert schema.index.cache_info().currsize == 0\n"
        "assert 'tailrace.protocol.codegen.compiler' not in sys.modules\n"
        "heavy = {'dataclasses', 'inspect', 'importlib.resources', 'uuid', 'asyncio', 'socket'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "m.FetchRequest().encode(4)\n"
        "assert 'tailrace.protocol.codegen.compiler' in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-S", "-c", program], check=True, env={"PYTHONPATH": ":".join(filter(None, sys.path))}
    )

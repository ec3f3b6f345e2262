"""Errors say what and where, also after a journey between processes."""

from __future__ import annotations

import pickle

import pytest

from tailrace.protocol.errors import MalformedMessage, ProtocolError, UnknownRecordType, UnsupportedVersion


@pytest.mark.parametrize("kind", [MalformedMessage, UnknownRecordType])
def test_a_malformed_message_error_names_message_reason_and_position(kind: type[MalformedMessage]) -> None:
    error = kind("FetchRequest v17", "ends too early", 12)
    assert str(error) == "FetchRequest v17: ends too early (at byte 12)"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (again.what, again.reason, again.position, str(again)) == (error.what, error.reason, 12, str(error))


def test_an_unknown_record_is_malformed_and_an_unsupported_version_is_not() -> None:
    assert issubclass(UnknownRecordType, MalformedMessage)
    assert not issubclass(UnsupportedVersion, MalformedMessage)
    assert issubclass(UnsupportedVersion, ProtocolError)

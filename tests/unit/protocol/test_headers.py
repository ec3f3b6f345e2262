"""Request and response headers."""

from __future__ import annotations

import pytest

from tailrace.protocol.api_keys import ApiKey, apis
from tailrace.protocol.errors import MalformedMessage, UnsupportedVersion
from tailrace.protocol.framing import frame_length
from tailrace.protocol.headers import (
    RequestHeader,
    read_request_header,
    read_response_header,
    request_header_version,
    response_header_version,
    write_request_header,
    write_response,
    write_response_header,
)
from tailrace.protocol.messages import HeartbeatResponse
from tailrace.protocol.messages import RequestHeader as RequestHeaderMessage
from tailrace.protocol.messages import ResponseHeader as ResponseHeaderMessage


@pytest.mark.parametrize(
    ("key", "version", "request_version", "response_version"),
    [
        (ApiKey.FETCH, 11, 1, 0),
        (ApiKey.FETCH, 12, 2, 1),
        (ApiKey.API_VERSIONS, 2, 1, 0),
        (ApiKey.API_VERSIONS, 3, 2, 0),  # the client cannot know yet whether the broker speaks flexible versions
        (ApiKey.API_VERSIONS, 99, 2, 0),
        (ApiKey.CONTROLLED_SHUTDOWN, 0, 0, 0),
        (ApiKey.CONTROLLED_SHUTDOWN, 1, 1, 0),
        (ApiKey.CONTROLLED_SHUTDOWN, 3, 2, 1),
        (ApiKey.SASL_HANDSHAKE, 1, 1, 0),
        (ApiKey.OFFSET_DELETE, 30000, 1, 0),
        (ApiKey.VOTE, 0, 2, 1),
    ],
)
def test_the_header_version_follows_from_the_api_and_its_version(
    key: ApiKey, version: int, request_version: int, response_version: int
) -> None:
    assert request_header_version(key, version) == request_version
    assert response_header_version(key, version) == response_version


def test_the_client_id_keeps_its_plain_length() -> None:
    header = RequestHeader(ApiKey.FETCH, 17, 7, "me")
    written = b"\0\1\0\x11\0\0\0\7\0\2me\0"
    assert write_request_header(header) == written
    assert read_request_header(written + b"rest") == (header, len(written))
    assert read_request_header(b"**" + written, 2) == (header, len(written) + 2)


def test_headers_agree_with_their_schemas() -> None:
    for one in apis():
        for version in one.versions:
            for client_id in (None, "", "client"):
                header = RequestHeader(one.key, version, 99, client_id)
                header_version = request_header_version(one.key, version)
                message = RequestHeaderMessage(request_api_key=one.key, request_api_version=version, correlation_id=99)
                if header_version == 0:
                    header = header._replace(client_id=None)
                else:
                    message.client_id = client_id
                assert write_request_header(header) == message.encode(header_version)
                assert read_request_header(message.encode(header_version)) == (
                    header,
                    len(message.encode(header_version)),
                )
            response = ResponseHeaderMessage(correlation_id=99).encode(response_header_version(one.key, version))
            assert write_response_header(one.key, version, 99) == response
            assert read_response_header(one.key, version, response + b"rest") == (99, len(response))


def test_tagged_fields_of_a_header_are_kept() -> None:
    header = RequestHeader(ApiKey.FETCH, 17, 7, None, ((0, b"x"), (300, b"")))
    assert read_request_header(write_request_header(header))[0] == header


def test_an_unknown_version_of_a_known_api_has_a_header() -> None:
    """The header is needed to respond to ApiVersions with the supported versions."""
    header, _ = read_request_header(b"\0\x12\0\x63\0\0\0\1\xff\xff\0")
    assert (header.api_key, header.api_version, header.correlation_id) == (ApiKey.API_VERSIONS, 99, 1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "ends too early"),
        (b"\0\1\0\x11\0\0\0", "ends too early"),
        (b"\0\1\0\x11\0\0\0\7\0", "ends too early"),
        (b"\0\1\0\x11\0\0\0\7\0\5me", "client id is longer than what follows"),
        (b"\0\1\0\x11\0\0\0\7\0\2me", "ends too early"),
        (b"\0\1\0\x11\0\0\0\7\0\2me\1\0", "ends too early"),
        (b"\0\1\0\x11\0\0\0\7\0\2me\1\0\x7f", "tagged field 0 is longer"),
        (b"\x30\x39\0\0\0\0\0\0\0\0", "API key 12345 is unknown"),
    ],
)
def test_a_malformed_request_header_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        read_request_header(data)


def test_a_malformed_response_header_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="response header"):
        read_response_header(ApiKey.FETCH, 17, b"\0\0\0\1")
    with pytest.raises(UnsupportedVersion):
        read_response_header(12345, 0, b"\0\0\0\1")


def test_a_whole_response_is_header_and_body() -> None:
    parts = write_response(ApiKey.HEARTBEAT, 4, 7, HeartbeatResponse(throttle_time_ms=1, error_code=27))
    assert b"".join(parts) == b"\0\0\0\7\0" + b"\0\0\0\1\0\x1b\0"
    assert frame_length(parts) == b"\0\0\0\x0c"

"""Headers of requests and responses, and the header version that a message uses.

    request   int16 api key, int16 api version, int32 correlation id, string client id (nullable), tagged fields
    response  int32 correlation id, tagged fields

Headers of flexible API versions have the tagged fields. There are three exceptions. The client id keeps its int16
length in flexible versions. Version 0 of ControlledShutdown has no client id. The header of an ApiVersions response
never has tagged fields, because the client does not know the broker's versions yet.
"""

from __future__ import annotations

import struct
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

from tailrace.protocol.api_keys import ApiKey, apis
from tailrace.protocol.errors import MalformedMessage, UnsupportedVersion
from tailrace.protocol.primitives import Buffer, Reader, Tags, Writer, read_tags, read_text, uvarint_tail

HEADER_TAGS_MAX = 64  # Kafka defines none; headers are read before the client is known
_REQUEST = Struct(">hhi")
_CLIENT_ID_LENGTH = Struct(">h")
_RESPONSE = Struct(">i")
_RESPONSE_FLEXIBLE = Struct(">iB")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None
    unknown_tags: Tags = ()


@cache
def _first_flexible() -> dict[int, int]:
    """Return each API's first flexible version. An API without one has a number that no version reaches."""
    return {api.key: api.flexible.low if api.flexible else 0x8000 for api in apis()}


def request_header_version(api_key: int, api_version: int) -> int:
    """Return 0, 1 or 2. Raise UnsupportedVersion for an unknown API."""
    try:
        first_flexible = _first_flexible()[api_key]
    except KeyError:
        raise UnsupportedVersion(f"API key {api_key} is unknown") from None
    if api_version >= first_flexible:
        return 2
    return 0 if api_key == ApiKey.CONTROLLED_SHUTDOWN and api_version == 0 else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """Return 0 or 1. Raise UnsupportedVersion for an unknown API."""
    return 1 if request_header_version(api_key, api_version) == 2 and api_key != ApiKey.API_VERSIONS else 0


def read_request_header(buffer: Buffer, position: int = 0) -> tuple[RequestHeader, int]:
    """Return the header at a position, and the position of the request body.

    A header with an unknown API key is malformed, because the end of the header is unknown. An unknown version of a
    known API is not malformed.
    """
    try:
        api_key, api_version, correlation_id = _REQUEST.unpack_from(buffer, position)
        version = request_header_version(api_key, api_version)
        position += _REQUEST.size
        if version == 0:
            return RequestHeader(api_key, api_version, correlation_id), position
        (length,) = _CLIENT_ID_LENGTH.unpack_from(buffer, position)
        position += 2
        client_id = None
        if length >= 0:
            if length > len(buffer) - position:
                raise MalformedMessage("request header", "client id is longer than what follows", position)
            client_id = read_text("client id", bytes(buffer[position : position + length]), position)
            position += length
        tags: Tags = ()
        if version == 2:
            count = buffer[position]
            position += 1
            if count:
                if count > 0x7F:
                    count, position = uvarint_tail(buffer, position, count)
                if count > HEADER_TAGS_MAX:
                    raise MalformedMessage("request header", f"has {count} tagged fields", position)
                tags, position = read_tags("request header", buffer, position, count)
        return RequestHeader(api_key, api_version, correlation_id, client_id, tags), position
    except (struct.error, IndexError):
        raise MalformedMessage("request header", "ends too early", position) from None
    except UnsupportedVersion as error:
        raise MalformedMessage("request header", str(error), position) from None


def write_request_header(header: RequestHeader) -> bytes:
    version = request_header_version(header.api_key, header.api_version)
    writer = Writer()
    writer.int16(header.api_key)
    writer.int16(header.api_version)
    writer.int32(header.correlation_id)
    if version > 0:
        writer.string(header.client_id)
    if version > 1:
        writer.tags((), header.unknown_tags)
    return writer.getvalue()


def read_response_header(api_key: int, api_version: int, buffer: Buffer, position: int = 0) -> tuple[int, int]:
    """Return the correlation id at a position, and the position of the response body."""
    is_flexible = response_header_version(api_key, api_version)
    if len(buffer) - position >= _RESPONSE_FLEXIBLE.size:
        correlation_id, tags = _RESPONSE_FLEXIBLE.unpack_from(buffer, position)
        if not (is_flexible and tags):
            return correlation_id, position + (_RESPONSE_FLEXIBLE if is_flexible else _RESPONSE).size
    reader = Reader(buffer, position, what="response header")
    correlation_id = reader.int32()
    if is_flexible:
        reader.tags()
    return correlation_id, reader.position


def write_response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    if response_header_version(api_key, api_version):
        return _RESPONSE_FLEXIBLE.pack(correlation_id, 0)
    return _RESPONSE.pack(correlation_id)


def write_response(api_key: int, api_version: int, correlation_id: int, response: Any) -> list[Any]:
    """Return a whole response as parts for a frame. Records are not copied."""
    parts: list[Any] = [write_response_header(api_key, api_version, correlation_id)]
    response.write(parts, api_version)
    return parts

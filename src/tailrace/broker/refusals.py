"""Refusals: requests that cannot be read and responses that cannot be written; each costs one connection at most."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tailrace.broker.request_context import ConnectionContext, Reply, Request
from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.metadata.storage.metadata_log import MetadataLogFailed
from tailrace.model.errors import KafkaError
from tailrace.protocol.api_keys import ApiKey, api
from tailrace.protocol.errors import ProtocolError, UnwritableMessage
from tailrace.protocol.headers import RequestHeader, write_response
from tailrace.protocol.registry import response_class

if TYPE_CHECKING:
    from tailrace.broker.broker import Broker

_log = logging.getLogger(__name__)


class Refusals:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._limited_log = LimitedLog(_log)

    def malformed(self, context: ConnectionContext, error: ProtocolError, now_ms: int) -> None:
        """Close the connection of a client that sent something else than a request."""
        self._limited_log.write(
            logging.WARNING,
            "not a request",
            now_ms,
            "connection closed: not a request",
            client=_client(context),
            error=error,
        )
        self._broker.put(Reply(context.connection_id, None, close=True))

    def version(self, header: RequestHeader, context: ConnectionContext, now_ms: int) -> None:
        """Close the connection, but answer ApiVersions: its client learns there which versions are served."""
        if header.api_key != ApiKey.API_VERSIONS:
            self._limited_log.write(
                logging.WARNING,
                "version",
                now_ms,
                "connection closed: no such API or version is served",
                client=_client(context),
                client_id=header.client_id,
                api_key=header.api_key,
                version=header.api_version,
            )
            self._broker.put(Reply(context.connection_id, None, close=True))
            return
        from tailrace.broker.requests.cluster.api_versions import unsupported_version

        parts = write_response(header.api_key, 0, header.correlation_id, unsupported_version())
        self._broker.put(Reply(context.connection_id, parts))

    def unwritable(self, request: Request, error: UnwritableMessage, now_ms: int) -> None:
        """Close the connection, as Kafka does, because the response does not fit the protocol. A client causes that
        with names so long that a string made of them is longer than 32,767 bytes."""
        self._limited_log.write(
            logging.WARNING,
            "unwritable",
            now_ms,
            "connection closed: the response cannot be encoded",
            client=_client(request.context),
            api=api(request.api_key).name,
            error=error,
        )
        self._broker.put(Reply(request.context.connection_id, None, close=True))

    def error(self, request: Request, error: KafkaError, now_ms: int) -> None:
        """Refuse the whole request where the API has a field for that; raise the error again otherwise."""
        response = response_class(request.api_key)()
        if not hasattr(response, "error_code"):
            if isinstance(error, MetadataLogFailed):
                self._broker.reply_nothing(request, close=True)
                return
            raise error
        response.error_code = error.code
        if hasattr(response, "error_message"):
            response.error_message = str(error)
        self._broker.answer(request, response, now_ms)


def _client(context: ConnectionContext) -> str:
    return f"{context.client_host}:{context.client_port}"

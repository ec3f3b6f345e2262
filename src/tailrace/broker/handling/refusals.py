"""Refusals: unreadable requests, and handlers that raise. Each costs at most its own connection."""

from __future__ import annotations

import logging

from tailrace.broker.replies import Replies
from tailrace.broker.requests.cluster.api_versions import unsupported_version
from tailrace.broker.requests.request_context import ConnectionContext, Reply, Request
from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.metadata.storage.metadata_log import MetadataLogFailed
from tailrace.model.errors import KafkaError
from tailrace.protocol.api_keys import ApiKey, api
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.headers import RequestHeader, write_response
from tailrace.protocol.registry import response_class

_log = logging.getLogger(__name__)


class Refusals:
    def __init__(self, replies: Replies, internal_errors: InternalErrors) -> None:
        self._replies = replies
        self._internal_errors = internal_errors
        self._limited_log = LimitedLog(_log)

    def malformed(self, context: ConnectionContext, error: ProtocolError, now_ms: int) -> None:
        """Close the connection of a client that sent a frame that is not a valid request."""
        self._limited_log.write(
            logging.WARNING,
            "not a request",
            now_ms,
            "connection closed: the client sent a malformed request",
            client=_client(context),
            error=error,
        )
        self._replies.close(context.connection_id)

    def version(self, header: RequestHeader, context: ConnectionContext, now_ms: int) -> None:
        """Close the connection because the API or version is not supported.

        An ApiVersions request gets a response instead, with the supported versions.
        """
        if header.api_key != ApiKey.API_VERSIONS:
            self._limited_log.write(
                logging.WARNING,
                "version",
                now_ms,
                "connection closed: the client sent an unsupported API or version",
                client=_client(context),
                client_id=header.client_id,
                api_key=header.api_key,
                version=header.api_version,
            )
            self._replies.close(context.connection_id)
            return
        parts = write_response(header.api_key, 0, header.correlation_id, unsupported_version())
        self._replies.put(Reply(context.connection_id, parts))

    def error(self, request: Request, error: KafkaError, now_ms: int) -> None:
        """Send the error in the response's top-level error code. Raise it again if the API has no such field."""
        response = response_class(request.api_key)()
        if not hasattr(response, "error_code"):
            if isinstance(error, MetadataLogFailed):
                self._replies.reply_nothing(request, now_ms, close=True)
                return
            raise error
        response.error_code = error.code
        if hasattr(response, "error_message"):
            response.error_message = str(error)
        self._replies.answer(request, response, now_ms)

    def failed(self, request: Request, error: Exception, now_ms: int) -> None:
        """Refuse a request whose handler has raised after a pause.

        An exception other than KafkaError is an internal error: it is counted, and the connection is closed.
        """
        try:
            if not isinstance(error, KafkaError):
                raise error
            self.error(request, error, now_ms)
        except Exception as unexpected:
            self._replies.reply_nothing(request, now_ms, close=True)
            self._internal_errors.survive("a request", unexpected, now_ms, api=api(request.api_key).name)


def _client(context: ConnectionContext) -> str:
    return f"{context.client_host}:{context.client_port}"

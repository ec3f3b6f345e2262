"""SaslGuard: authentication of connections with SASL.

    ApiVersions? ──► SaslHandshake ──► SaslAuthenticate … ──► authenticated: requests are passed on

After a SaslHandshake of version 0, SASL tokens arrive as bare frames without a request header. A request in the wrong
state is refused as by Kafka: with ILLEGAL_SASL_STATE if the API has an error field, and the connection is closed. After
a wrong password, the connection is closed with a delay of connection.failed.authentication.delay.ms.

If sessions expire (connections.max.reauth.ms, KIP-368), the client must re-authenticate as the same user, beginning
with a SaslHandshake. Any other request in an expired session closes the connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from tailrace.broker.config.sasl_config import SaslSettings
from tailrace.broker.dispatcher import Dispatcher
from tailrace.broker.handling.request_decoder import ELEMENTS_UNAUTHENTICATED_MAX
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import ConnectionContext, Part, Reply, Session
from tailrace.broker.security.oauth_exchange import Answer, HeldToken, OauthExchange
from tailrace.broker.security.sasl_exchanges import AuthenticationRefused, Exchange, PlainExchange, ScramExchange
from tailrace.broker.security.token_credentials import TokenCredentials
from tailrace.broker.security.token_validators import KeysAwaited, TokenValidator
from tailrace.broker.security.unknown_users import credential_for_unknown
from tailrace.broker.services import Services
from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.model.errors import ErrorCode
from tailrace.model.security import oauthbearer
from tailrace.model.security.scram import MECHANISMS
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.headers import RequestHeader, read_request_header, write_response
from tailrace.protocol.messages import (
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
    UserScramCredentialRecord,
)
from tailrace.protocol.registry import request_class, response_class
from tailrace.waiting.purgatory import DelayedOperation

REAUTHENTICATION_MS_MIN: Final = 1_000  # minimum time between two re-authentications
Handle: TypeAlias = Callable[[memoryview, ConnectionContext, int], bool]
_log = logging.getLogger(__name__)


class SaslSession(Session):
    """The state of a connection's authentication."""

    __slots__ = ("begun_ms", "ends_ms", "exchange", "has_asked_versions", "has_headers", "mechanism", "settings")

    def __init__(self, settings: SaslSettings) -> None:
        self.settings = settings
        self.exchange: Exchange | None = None  # from the SaslHandshake until the exchange is complete
        self.mechanism = ""
        self.has_headers = False  # True: SASL tokens arrive in SaslAuthenticate requests
        self.has_asked_versions = False
        self.begun_ms: int | None = None  # the start of the last re-authentication
        self.ends_ms: int | None = None  # when the session ends

    @property
    def expects_bare_token(self) -> bool:
        """Return True if the next frame is a SASL token without a request header."""
        return self.exchange is not None and not self.has_headers


class _Refused(Exception):
    """The connection is to be closed, after the delay."""

    def __init__(self, reason: str, parts: list[Part] | None = None) -> None:
        super().__init__(reason)
        self.parts = parts


class SaslGuard:
    def __init__(
        self,
        services: Services,
        dispatcher: Dispatcher,
        settings: Mapping[str, SaslSettings],
        new_id: Callable[[], bytes],
        validators: Mapping[str, TokenValidator] | None = None,
    ) -> None:
        """`validators` are the token validators of listeners with OAUTHBEARER, by listener name."""
        self._apis = services.apis
        self._controller = services.controller
        self._purgatory = services.purgatory
        self._replies = services.replies
        self._round = services.current_round
        self._dispatcher = dispatcher
        self._settings = settings
        self._new_id = new_id
        self._validators = validators or {}
        self._tokens = TokenCredentials(
            services.config.tokens, lambda: services.controller.image, lambda: new_id() + new_id()
        )
        self._delay_ms = services.config.integer("connection.failed.authentication.delay.ms")
        self._limited_log = LimitedLog(_log)

    def handle(self, frame: memoryview, context: ConnectionContext, now_ms: int, pass_on: Handle) -> bool:
        """Handle a frame. Frames of authenticated clients go to `pass_on`.

        Return True if the connection may hand over its next frame before this reply is taken.
        """
        session = context.session
        if session is None:
            session = SaslSession(self._settings[context.listener])
            context.begin_session(session)
        assert isinstance(session, SaslSession)
        if context.is_authenticated and session.exchange is None:
            if _key_of(frame) == ApiKey.SASL_HANDSHAKE and self._may_reauthenticate(session, now_ms):
                session.begun_ms = now_ms
            elif session.ends_ms is not None and now_ms > session.ends_ms:
                self._log_refusal(context, "the session has expired", now_ms)
                self._replies.put(Reply(context.connection_id, None, close=True))
                return False
            else:
                return pass_on(frame, context, now_ms)
        self._round.carry_out()
        self._attempt(lambda: self._step(session, frame, context, now_ms), context, now_ms)
        return False

    def _attempt(self, step: Callable[[], None], context: ConnectionContext, now_ms: int) -> None:
        """Take a step of the authentication. Close the connection if the client made an error."""
        try:
            step()
        except _Refused as refused:
            self._log_refusal(context, str(refused), now_ms)
            self._refuse_later(context, refused.parts, now_ms)
        except ProtocolError as error:
            self._log_refusal(context, str(error), now_ms)
            self._replies.put(Reply(context.connection_id, None, close=True))

    def _may_reauthenticate(self, session: SaslSession, now_ms: int) -> bool:
        """Return True if the session can expire and the last re-authentication is long enough ago."""
        if session.ends_ms is None:
            return False
        return session.begun_ms is None or now_ms - session.begun_ms >= REAUTHENTICATION_MS_MIN

    def _step(self, session: SaslSession, frame: memoryview, context: ConnectionContext, now_ms: int) -> None:
        if len(frame) > session.settings.token_bytes_max:
            raise _Refused(
                f"the request has {len(frame)} bytes; the limit during authentication is "
                f"{session.settings.token_bytes_max} (sasl.server.max.receive.size)"
            )
        if session.exchange is not None and session.expects_bare_token:
            self._take_bare(session, session.exchange, bytes(frame), context, now_ms)
            return
        header, position = read_request_header(frame)
        if session.exchange is not None:
            self._take_token(session, session.exchange, frame, header, position, context, now_ms)
        elif header.api_key == ApiKey.SASL_HANDSHAKE:
            self._shake_hands(session, frame, header, position, context)
        elif header.api_key == ApiKey.API_VERSIONS and not session.has_asked_versions:
            row = self._apis[ApiKey.API_VERSIONS]
            session.has_asked_versions = row.min_version <= header.api_version <= row.max_version
            self._dispatcher.handle(frame, context, now_ms)
        else:
            raise _Refused(f"request {header.api_key} before authentication")

    def _shake_hands(
        self, session: SaslSession, frame: memoryview, header: RequestHeader, position: int, context: ConnectionContext
    ) -> None:
        body = self._read(frame, header, position)
        allowed = session.settings.mechanisms
        response = SaslHandshakeResponse(mechanisms=list(allowed))
        if body.mechanism not in allowed:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            raise _Refused(f"mechanism {body.mechanism!r} is not enabled", _written(header, response))
        session.has_headers = session.has_headers or header.api_version >= 1
        session.exchange = self._exchange(session.settings, body.mechanism, context)
        if context.is_authenticated and body.mechanism != session.mechanism:
            session.exchange = _OtherMechanism()
        session.mechanism = body.mechanism
        self._replies.put(Reply(context.connection_id, _written(header, response)))

    def _exchange(self, settings: SaslSettings, mechanism: str, context: ConnectionContext) -> Exchange:
        if mechanism == oauthbearer.MECHANISM:
            return OauthExchange(self._validators[context.listener], self._limited_log)
        if mechanism == "PLAIN":
            return PlainExchange(settings.passwords)
        nonce = (self._new_id() + self._new_id()).hex()
        return ScramExchange(mechanism, self._credential, nonce, self._tokens.find)

    def _credential(self, mechanism: str, name: str) -> UserScramCredentialRecord:
        known = self._controller.image.scram_credentials
        found = known.get((MECHANISMS[mechanism], name))
        return credential_for_unknown(known, mechanism, name) if found is None else found

    def _take_token(
        self,
        session: SaslSession,
        exchange: Exchange,
        frame: memoryview,
        header: RequestHeader,
        position: int,
        context: ConnectionContext,
        now_ms: int,
    ) -> None:
        if header.api_key != ApiKey.SASL_AUTHENTICATE:
            raise _Refused(f"request {header.api_key} during authentication", _out_of_turn(header))
        body = self._read(frame, header, position)
        token = bytes(body.auth_bytes)
        self._evaluate(exchange, token, partial(self._answer, session, exchange, header, context), context, now_ms)

    def _evaluate(
        self, exchange: Exchange, token: bytes, answer: Answer, context: ConnectionContext, now_ms: int
    ) -> None:
        """Evaluate a SASL token and respond; later, if signing keys have to be fetched first."""
        try:
            answer(lambda: exchange.evaluate(token, now_ms), now_ms)
        except KeysAwaited as awaited:
            assert isinstance(exchange, OauthExchange)

            def answer_later(step: Callable[[], bytes], later_ms: int) -> None:
                self._attempt(lambda: answer(step, later_ms), context, later_ms)

            held = HeldToken(awaited.cache, exchange, answer_later, now_ms)
            self._replies.parked(context, held)
            self._purgatory.watch(held, (awaited.cache,), now_ms)

    def _answer(
        self,
        session: SaslSession,
        exchange: Exchange,
        header: RequestHeader,
        context: ConnectionContext,
        evaluate: Callable[[], bytes],
        now_ms: int,
    ) -> None:
        """Respond to a SaslAuthenticate request."""
        try:
            token = evaluate()
            self._check_same(exchange, context)
        except AuthenticationRefused as refused:
            again = "re-authentication" if context.is_authenticated else "authentication"
            message = refused.client_message or (
                f"Authentication failed during {again} due to invalid credentials with SASL mechanism "
                f"{session.mechanism}"
            )
            failed = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=message)
            raise _Refused(
                message, None if isinstance(exchange, _OtherMechanism) else _written(header, failed)
            ) from None
        lifetime_ms = self._complete(session, exchange, context, now_ms)
        response = SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms, error_message="")
        self._replies.put(Reply(context.connection_id, _written(header, response)))

    def _take_bare(
        self, session: SaslSession, exchange: Exchange, token: bytes, context: ConnectionContext, now_ms: int
    ) -> None:
        self._evaluate(exchange, token, partial(self._answer_bare, session, exchange, context), context, now_ms)

    def _answer_bare(
        self,
        session: SaslSession,
        exchange: Exchange,
        context: ConnectionContext,
        evaluate: Callable[[], bytes],
        now_ms: int,
    ) -> None:
        try:
            answer = evaluate()
            self._check_same(exchange, context)
        except AuthenticationRefused as refused:
            raise _Refused(str(refused)) from None
        self._complete(session, exchange, context, now_ms)
        self._replies.put(Reply(context.connection_id, [answer]))

    def _check_same(self, exchange: Exchange, context: ConnectionContext) -> None:
        if exchange.user is not None and context.is_authenticated and context.principal != f"User:{exchange.user}":
            before = _dotted(context.principal)
            raise AuthenticationRefused(
                f"Cannot change principals during re-authentication from {before}: User.{exchange.user}"
            )

    def _complete(self, session: SaslSession, exchange: Exchange, context: ConnectionContext, now_ms: int) -> int:
        """Authenticate the connection if the exchange is complete.

        Return the lifetime of the session in ms, or 0 if it is unlimited or the exchange is not complete.
        """
        if exchange.user is None:
            return 0
        session.exchange = None
        context.authenticate(f"User:{exchange.user}", has_token=exchange.token is not None)
        lifetime_ms = session.settings.session_ms[session.mechanism]
        is_limited = lifetime_ms > 0
        expires_ms = exchange.expires_ms if isinstance(exchange, OauthExchange) else None
        if exchange.token is not None:
            expires_ms = exchange.token.expires_ms
        if expires_ms is not None:
            left_ms = max(expires_ms - now_ms, 0)
            lifetime_ms = min(lifetime_ms, left_ms) if is_limited else left_ms
            is_limited = True
        # A token may be accepted shortly after its expiry, because clocks differ. Its session expires at once.
        session.ends_ms = (now_ms + lifetime_ms if lifetime_ms else now_ms - 1) if is_limited else None
        return lifetime_ms

    def _read(self, frame: memoryview, header: RequestHeader, position: int) -> Any:
        row = self._apis[header.api_key]
        if not row.min_version <= header.api_version <= row.max_version:
            raise _Refused(f"version {header.api_version} of request {header.api_key} is not supported")
        body, _ = request_class(header.api_key).read(frame, header.api_version, position, ELEMENTS_UNAUTHENTICATED_MAX)
        return body

    # Refusing

    def _refuse_later(self, context: ConnectionContext, parts: list[Part] | None, now_ms: int) -> None:
        reply = Reply(context.connection_id, parts, close=True)
        if not self._delay_ms:
            self._replies.put(reply)
            return
        refusal = _DelayedRefusal(self._replies, reply, now_ms + self._delay_ms)
        self._replies.parked(context, refusal)
        self._purgatory.watch(refusal, (), now_ms)

    def _log_refusal(self, context: ConnectionContext, reason: str, now_ms: int) -> None:
        client = f"{context.client_host}:{context.client_port}"
        self._limited_log.write(
            logging.WARNING,
            "unauthenticated",
            now_ms,
            "connection closed: authentication failed",
            client=client,
            listener=context.listener,
            error=reason,
        )


class _OtherMechanism(Exchange):
    """The exchange of a re-authentication with another mechanism. It always fails."""

    user = None
    token = None

    def evaluate(self, token: bytes, now_ms: int) -> bytes:
        raise AuthenticationRefused("a re-authentication must use the same mechanism")


class _DelayedRefusal(DelayedOperation):
    """A delayed response to a failed authentication, which slows down password guessing."""

    __slots__ = ("_replies", "_reply")

    def __init__(self, replies: Replies, reply: Reply, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self._replies = replies
        self._reply = reply

    def try_complete(self, now_ms: int) -> bool:
        return False

    def expire(self, now_ms: int) -> None:
        self._replies.put(self._reply)


def _dotted(principal: str) -> str:
    """Return a principal as Kafka writes it in this one message."""
    return principal.replace(":", ".", 1)


def _key_of(frame: memoryview) -> int:
    return int.from_bytes(frame[:2], "big") if len(frame) >= 2 else -1


def _written(header: RequestHeader, response: Any) -> list[Part]:
    return write_response(header.api_key, header.api_version, header.correlation_id, response)


def _out_of_turn(header: RequestHeader) -> list[Part] | None:
    """Return a response with ILLEGAL_SASL_STATE, or None if the API has no error field."""
    try:
        response: Any = response_class(header.api_key)()
        if not hasattr(response, "error_code"):
            return None
        response.error_code = ErrorCode.ILLEGAL_SASL_STATE
        return _written(header, response)
    except (KeyError, ProtocolError):
        return None

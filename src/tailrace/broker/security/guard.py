"""Guard: connections whose clients have to authenticate (SASL).

    ApiVersions? ──► SaslHandshake ──► SaslAuthenticate … ──► authenticated: requests pass

After a SaslHandshake of version 0 the tokens come as bare frames. A request out of turn is refused as Kafka refuses it,
with ILLEGAL_SASL_STATE if the API has a field for that, and the connection is closed. A wrong password closes it after
connection.failed.authentication.delay.ms. Where sessions expire (connections.max.reauth.ms, KIP-368), a client has to
re-authenticate as the same user, beginning with a SaslHandshake; any other request then closes its connection.
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

AGAIN_MS_MIN: Final = 1_000  # minimum time between two re-authentications
Handle: TypeAlias = Callable[[memoryview, ConnectionContext, int], bool]
_log = logging.getLogger(__name__)


class SaslSession(Session):
    """How far a connection is."""

    __slots__ = ("begun_ms", "ends_ms", "exchange", "has_asked_versions", "has_headers", "mechanism", "settings")

    def __init__(self, settings: SaslSettings) -> None:
        self.settings = settings
        self.exchange: Exchange | None = None  # once the mechanism is agreed on, until it is complete
        self.mechanism = ""
        self.has_headers = False  # tokens come as SaslAuthenticate
        self.has_asked_versions = False
        self.begun_ms: int | None = None  # when it was last said again who it is
        self.ends_ms: int | None = None  # when the session ends


class _Refused(Exception):
    """The connection has to go, after the delay."""

    def __init__(self, reason: str, parts: list[Part] | None = None) -> None:
        super().__init__(reason)
        self.parts = parts


class Guard:
    def __init__(
        self,
        services: Services,
        dispatcher: Dispatcher,
        settings: Mapping[str, SaslSettings],
        new_id: Callable[[], bytes],
        validators: Mapping[str, TokenValidator] | None = None,
    ) -> None:
        """`validators`: of tokens, by listener, for those with OAUTHBEARER."""
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
        """Handle a frame; those of authenticated clients go to `pass_on`. Return True if the reply is deferred."""
        session = context.session
        if session is None:
            session = SaslSession(self._settings[context.listener])
            context.begin_session(session)
        assert isinstance(session, SaslSession)
        if context.is_authenticated and session.exchange is None:
            if _key_of(frame) == ApiKey.SASL_HANDSHAKE and self._may_begin_again(session, now_ms):
                session.begun_ms = now_ms
            elif session.ends_ms is not None and now_ms > session.ends_ms:
                self._complain(context, "its session has ended", now_ms)
                self._replies.put(Reply(context.connection_id, None, close=True))
                return False
            else:
                return pass_on(frame, context, now_ms)
        self._round.carry_out()
        self._attempt(lambda: self._step(session, frame, context, now_ms), context, now_ms)
        return False

    def _attempt(self, step: Callable[[], None], context: ConnectionContext, now_ms: int) -> None:
        """Take a step of the authentication; what the client did wrong costs it its connection."""
        try:
            step()
        except _Refused as refused:
            self._complain(context, str(refused), now_ms)
            self._refuse_later(context, refused.parts, now_ms)
        except ProtocolError as error:
            self._complain(context, str(error), now_ms)
            self._replies.put(Reply(context.connection_id, None, close=True))

    def _may_begin_again(self, session: SaslSession, now_ms: int) -> bool:
        """Where sessions do not end, nobody says it again."""
        if session.ends_ms is None:
            return False
        return session.begun_ms is None or now_ms - session.begun_ms >= AGAIN_MS_MIN

    def _step(self, session: SaslSession, frame: memoryview, context: ConnectionContext, now_ms: int) -> None:
        if len(frame) > session.settings.token_bytes_max:
            raise _Refused(f"{len(frame)} bytes, where sasl.server.max.receive.size is less")
        if session.exchange is not None and not session.has_headers:
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
            raise _Refused(f"request {header.api_key} before it has said who it is")

    def _shake_hands(
        self, session: SaslSession, frame: memoryview, header: RequestHeader, position: int, context: ConnectionContext
    ) -> None:
        body = self._read(frame, header, position)
        allowed = session.settings.mechanisms
        response = SaslHandshakeResponse(mechanisms=list(allowed))
        if body.mechanism not in allowed:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            raise _Refused(f"mechanism {body.mechanism!r}", _written(header, response))
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
            raise _Refused(f"request {header.api_key} in the middle of saying who it is", _out_of_turn(header))
        body = self._read(frame, header, position)
        words = bytes(body.auth_bytes)
        self._evaluate(exchange, words, partial(self._answer, session, exchange, header, context), context, now_ms)

    def _evaluate(
        self, exchange: Exchange, words: bytes, answer: Answer, context: ConnectionContext, now_ms: int
    ) -> None:
        """Answer the client's words; later, if the keys that they need have to be fetched first."""
        try:
            answer(lambda: exchange.evaluate(words, now_ms), now_ms)
        except KeysAwaited as awaited:
            assert isinstance(exchange, OauthExchange)

            def answer_later(step: Callable[[], bytes], later_ms: int) -> None:
                self._attempt(lambda: answer(step, later_ms), context, later_ms)

            held = HeldToken(awaited.cache, exchange, answer_later, now_ms)
            self._replies.parked(context, held)
            self._purgatory.watch(held, (awaited.cache,))

    def _answer(
        self,
        session: SaslSession,
        exchange: Exchange,
        header: RequestHeader,
        context: ConnectionContext,
        evaluate: Callable[[], bytes],
        now_ms: int,
    ) -> None:
        """Answer a SaslAuthenticate request."""
        try:
            token = evaluate()
            self._check_same(exchange, context)
        except AuthenticationRefused as refused:
            again = "re-authentication" if context.is_authenticated else "authentication"
            told = refused.told or (
                f"Authentication failed during {again} due to invalid credentials with SASL mechanism "
                f"{session.mechanism}"
            )
            failed = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=told)
            raise _Refused(told, None if isinstance(exchange, _OtherMechanism) else _written(header, failed)) from None
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
        """If the exchange is complete, its client is who it says; for how many ms, 0 for ever."""
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
        # A token that has expired, and is accepted because clocks may differ, is good for no further request.
        session.ends_ms = (now_ms + lifetime_ms if lifetime_ms else now_ms - 1) if is_limited else None
        return lifetime_ms

    def _read(self, frame: memoryview, header: RequestHeader, position: int) -> Any:
        row = self._apis[header.api_key]
        if not row.min_version <= header.api_version <= row.max_version:
            raise _Refused(f"version {header.api_version} of request {header.api_key}")
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
        self._purgatory.watch(refusal, ())

    def _complain(self, context: ConnectionContext, reason: str, now_ms: int) -> None:
        client = f"{context.client_host}:{context.client_port}"
        self._limited_log.write(
            logging.WARNING,
            "unproven",
            now_ms,
            "connection closed: its client is not authenticated",
            client=client,
            listener=context.listener,
            error=reason,
        )


class _OtherMechanism(Exchange):
    """Who says again who it is has to do it in the same way."""

    user = None
    token = None

    def evaluate(self, token: bytes, now_ms: int) -> bytes:
        raise AuthenticationRefused("the mechanism is another than before")


class _DelayedRefusal(DelayedOperation):
    """An answer that is held back, so that guessing passwords takes long."""

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
    """As Kafka writes a principal there, and nowhere else."""
    return principal.replace(":", ".", 1)


def _key_of(frame: memoryview) -> int:
    return int.from_bytes(frame[:2], "big") if len(frame) >= 2 else -1


def _written(header: RequestHeader, response: Any) -> list[Part]:
    return write_response(header.api_key, header.api_version, header.correlation_id, response)


def _out_of_turn(header: RequestHeader) -> list[Part] | None:
    """ILLEGAL_SASL_STATE, if the API has a place for it."""
    try:
        response: Any = response_class(header.api_key)()
        if not hasattr(response, "error_code"):
            return None
        response.error_code = ErrorCode.ILLEGAL_SASL_STATE
        return _written(header, response)
    except (KeyError, ProtocolError):
        return None

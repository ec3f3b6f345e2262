"""Site: answers a request to the console.

    GET  /                          the page; its files are beside it
    GET  /api/session               what the console allows, and who is logged in
    POST /api/login, /api/logout    a user of the cluster
    GET  /api/topics/list?…         the JSON that `tailrace topics list --json` prints
    GET  /api/live/consume?…        a stream of events, each with one line of such a command
    GET  /api/history/lag?arg=…     the lines of `tailrace groups lag --watch` over the last day, for one group
    POST /api/topics/create?…       a command that changes something

A response of status 200 is what a command printed, which may be an error. The header `tailrace-exit-status` has the
command's exit status, and `tailrace-command` its command line.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import shlex
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from tailrace.cli.console.command_process import CommandRunner, Finished, TooBusy, TooLong
from tailrace.cli.console.command_table import ARGUMENT, Command, Form, InvalidCommand, Source, find_command
from tailrace.cli.console.console_settings import ConsoleSettings
from tailrace.cli.console.http_message import JSON, Request, Response
from tailrace.cli.console.lag_history import LagHistory
from tailrace.cli.console.login_attempts import LoginAttempts
from tailrace.cli.console.shared_answers import SharedAnswers, SharedStreams
from tailrace.cli.console.static_files import StaticFiles
from tailrace.cli.console.visitors import Visitor, Visitors, foreign_reason

TIMEOUT_S: Final = 20  # of a command that talks to the cluster
COMMAND_HEADER: Final = "tailrace-command"
STATUS_HEADER: Final = "tailrace-exit-status"
_FORM_KINDS: Final = {Form.LINES: "application/x-ndjson; charset=utf-8", Form.FILE: "application/octet-stream"}
_LIVE: Final = "live/"
_KEEP_ALIVE_S: Final = 15.0
_COMPRESSED_FROM: Final = 4_096
_SAFE_IN_HEADER: Final = " -=:/,.'\"[]{}@"
_PROTECTION: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Site:
    def __init__(self, settings: ConsoleSettings, runner: CommandRunner, clock_s: Callable[[], float]) -> None:
        self._settings = settings
        self._runner = runner
        self._answers = SharedAnswers(runner, clock_s)
        self._streams = SharedStreams(runner)
        self._visitors = Visitors(settings, clock_s)
        self._attempts = LoginAttempts(clock_s)
        self._files = StaticFiles()
        self.history = None if settings.lag_every_s is None else LagHistory(settings.lag_every_s)

    async def record_history(self) -> None:
        """Record the lag of groups until the task is cancelled."""
        if self.history is not None:
            await self.history.record(self._runner, self._history_words())

    def _history_words(self) -> list[str]:
        assert self.history is not None
        words = ["groups", "lag", "--times", f"--watch={self.history.interval_s:g}", "--json"]
        return self._whole(words, Source.CLUSTER, None)

    async def respond(self, request: Request) -> Response:
        reason = foreign_reason(request, self._settings)
        if reason is not None:
            response = Response.of_error(403, reason)
        elif request.method not in ("GET", "HEAD", "POST"):
            response = Response.of_error(405, f"the method {request.method} is not supported")
        elif request.path.startswith("/api/"):
            response = await self._api(request, request.path.removeprefix("/api/"))
        else:
            name = request.path.removeprefix("/") or "index.html"
            response = self._files.response(request, name) or Response.of_error(404, f"there is no page {name!r}")
        return replace(response, headers={"cache-control": "no-store", **_PROTECTION, **response.headers})

    async def _api(self, request: Request, path: str) -> Response:
        visitor = self._visitors.find(request)
        if path == "session":
            return Response.of_json(self._session(visitor))
        if path in ("login", "logout"):
            return await self._change_session(request, path)
        if self._settings.has_login and visitor is None:
            return Response.of_error(401, "log in first")
        if path == "history/lag":
            return self._lag_history(request)
        try:
            return await self._run(request, path, visitor)
        except InvalidCommand as error:
            return Response.of_error(400, str(error))
        except TooBusy as error:
            return Response.of_error(503, str(error))
        except TooLong as error:
            return Response.of_error(504, str(error))

    def _session(self, visitor: Visitor | None) -> dict[str, object]:
        settings = self._settings
        return {
            "hasLogin": settings.has_login,
            "user": None if visitor is None else visitor.user,
            "mayWrite": settings.may_write,
            "hasData": bool(settings.data),
            "hasMetrics": settings.metrics is not None,
            "hasHistory": self.history is not None,
            "hasRegistry": settings.schema_registry is not None,
        }

    def _lag_history(self, request: Request) -> Response:
        """Return the lag of a group over the last day. A console with a login records none: it has no user itself."""
        groups = [value for name, value in request.query if name == ARGUMENT]
        if self.history is None or len(groups) != 1:
            return Response.of_json({"intervalS": None, "points": []})
        headers = {COMMAND_HEADER: quote(command_text(self._history_words()), safe=_SAFE_IN_HEADER)}
        points = self.history.points(groups[0])
        return Response.of_json({"intervalS": self.history.interval_s, "points": points}, headers=headers)

    async def _change_session(self, request: Request, path: str) -> Response:
        if request.method != "POST":
            return Response.of_error(405, f"{path} needs a POST")
        if path == "logout":
            return Response.of_json({}, headers={"set-cookie": self._visitors.log_out(request)})
        if not self._settings.has_login:
            return Response.of_error(400, "this console has no login")
        try:
            fields = json.loads(request.body)
            user, password = str(fields["user"]), str(fields["password"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return Response.of_error(400, "a login is a JSON object with `user` and `password`")
        wait_s = self._attempts.begin(request.address)
        if wait_s:
            text = f"too many failed logins from {request.address}: try again in {wait_s} s"
            return replace(Response.of_error(429, text), headers={"retry-after": str(wait_s)})
        visitor = Visitor(user, password, 0)
        try:
            finished = await self._runner.run(self._whole(["topics", "list", "--json"], Source.CLUSTER, visitor))
        except (TooBusy, TooLong) as error:
            return Response.of_error(503, str(error))
        if finished.status:
            return _failure(finished, 401)
        self._attempts.succeeded(request.address)
        return Response.of_json({"user": user}, headers={"set-cookie": self._visitors.log_in(user, password)})

    async def _run(self, request: Request, path: str, visitor: Visitor | None) -> Response:
        is_live = path.startswith(_LIVE)
        command = find_command(f"{path.removeprefix(_LIVE)} live" if is_live else path)
        if command.changes:
            if not self._settings.may_write:
                raise InvalidCommand("this console is read-only: start it with --console-write to allow changes")
            if request.method != "POST":
                return Response.of_error(405, "a command that changes something needs a POST")
        words = command.words_for(request.query)
        if (refusal := await self._refusal(request, command.source, visitor)) is not None:
            return refusal
        whole = self._whole(words, command.source, visitor)
        headers = {COMMAND_HEADER: quote(command_text(whole), safe=_SAFE_IN_HEADER)}
        if is_live:
            lines = self._streams.lines(whole) if command.is_shared else self._runner.stream(whole)
            return Response(200, _events(lines), "text/event-stream; charset=utf-8", headers)
        if command.is_shared:
            finished = await self._answers.run(whole)
        else:
            finished = await self._runner.run(whole, request.body if command.reads_text else b"")
        if command.changes:
            self._answers.forget()
        headers[STATUS_HEADER] = str(finished.status)
        if finished.status and not finished.out:
            return replace(_failure(finished, 200), headers=headers)
        return _compressed(request, command, finished, headers)

    async def _refusal(self, request: Request, source: Source, visitor: Visitor | None) -> Response | None:
        """Return the response to a visitor who may not see a place that the cluster does not guard itself.

        The files of a topic are shown to those who may describe it, metrics to those who may describe the cluster.
        """
        if source is Source.CLUSTER or (visitor is None and source is Source.METRICS):
            return None
        words = ["users", "list", "--json"]
        if source is Source.DATA:
            topics = [value for name, value in request.query if name == "topic"]
            if not topics:
                raise InvalidCommand("name a topic")
            words = find_command("topics describe").words_for([(ARGUMENT, topic) for topic in topics])
        finished = await self._runner.run(self._whole(words, Source.CLUSTER, visitor))
        return _failure(finished, 403) if finished.status else None

    def _whole(self, words: Sequence[str], source: Source, visitor: Visitor | None) -> list[str]:
        """Return a command line with its connection, directory or metrics address."""
        settings = self._settings
        place = next((at for at, word in enumerate(words) if word == "--"), len(words))
        more: list[str] = []
        if source is Source.DATA:
            if not settings.data:
                raise InvalidCommand("this console sees no data directory: start it with --data DIR")
            chosen = settings.directory_of(_folder(words))
            return [*words, *(() if "--" in words else ("--",)), chosen]
        if source is Source.METRICS and settings.metrics is None and words[0] != "top":
            raise InvalidCommand("this console knows no metrics address: start it with --metrics HOST:PORT")
        if source is Source.METRICS and settings.metrics is not None:
            more = [f"--metrics={settings.metrics}"]
        else:
            more = [*settings.connection, f"--timeout={TIMEOUT_S}"]
            if settings.schema_registry is not None and words[0] == "consume":
                more.append(f"--schema-registry={settings.schema_registry}")
            if visitor is not None:
                more += [f"-Xsasl.username={visitor.user}", f"-Xsasl.password={visitor.password}"]
        return [*words[:place], *more, *words[place:]]


def _folder(words: Sequence[str]) -> str:
    """Return the name of the folder of the partition that a command reads."""
    given = dict(word.removeprefix("--").partition("=")[::2] for word in words if word.startswith("--"))
    return f"{given.get('topic', '')}-{given.get('partition', '0')}"


async def _events(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines of a command as server-sent events, and a comment when there is none for a while."""
    waiting: asyncio.Future[bytes | None] | None = None
    yield b"retry: 3000\n\n"
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(lines, None))
            done, _ = await asyncio.wait({waiting}, timeout=_KEEP_ALIVE_S)
            if not done:
                yield b": no news\n\n"
                continue
            line, waiting = waiting.result(), None
            if line is None:
                yield b"event: end\ndata: {}\n\n"
                return
            yield b"data: " + line + b"\n\n"
    except (TooBusy, TooLong) as error:
        yield b"event: refused\ndata: " + json.dumps({"message": str(error)}).encode() + b"\n\n"
    finally:
        if waiting is not None:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        await lines.aclose()  # type: ignore[attr-defined]


def command_text(words: Sequence[str]) -> str:
    """Return a command line as a user types it, without passwords."""
    left_out = ("--json", f"--timeout={TIMEOUT_S}")
    kept = [_without_password(word) for word in words if word not in left_out and not _is_secret(word)]
    return shlex.join(["tailrace", *kept]).replace(" -- ", " ")


def _file_name(request: Request, command: Command) -> str:
    """Return the name of a saved file, as a header has it: the topic, and an ending by the format."""
    subject = next((value for name, value in request.query if name == ARGUMENT), "records")
    return quote(f"{subject}.{command.view}", safe="")


def _is_secret(word: str) -> bool:
    name = word.partition("=")[0].lower()
    return name.startswith("-x") and any(part in name for part in ("password", "secret", "jaas", "key"))


def _without_password(word: str) -> str:
    """Return an option without the user and the password that the URL of a schema registry may have."""
    return re.sub(r"^(--schema-registry=\w+://)[^/]*@", r"\1", word)


def _failure(finished: Finished, status: int) -> Response:
    """Return the error that a command printed."""
    lines = finished.err.decode("utf-8", "replace").strip().splitlines()
    last = lines[-1] if lines else ""
    if last.startswith('{"error"'):
        return Response(status, last.encode(), JSON)
    return Response.of_error(status, last or f"the command ended with status {finished.status}")


def _compressed(request: Request, command: Command, finished: Finished, headers: dict[str, str]) -> Response:
    kind = _FORM_KINDS.get(command.form, JSON)
    if command.form is Form.FILE:
        headers = {**headers, "content-disposition": f"attachment; filename*=UTF-8''{_file_name(request, command)}"}
    if len(finished.out) < _COMPRESSED_FROM or "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(200, finished.out, kind, headers)
    body = gzip.compress(finished.out, 1)
    return Response(200, body, kind, {**headers, "content-encoding": "gzip", "vary": "accept-encoding"})

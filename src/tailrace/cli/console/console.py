"""`tailrace console`: serve the page until SIGTERM, SIGINT, or the end of the broker beside it."""

from __future__ import annotations

import argparse
import asyncio
import signal
import ssl
import sys
import time
from contextlib import suppress
from pathlib import Path

from tailrace.cli.connection.connecting import check_connection
from tailrace.cli.console.command_process import CommandRunner
from tailrace.cli.console.console_settings import ConsoleSettings, split_address
from tailrace.cli.console.http_server import HttpServer
from tailrace.cli.console.site import Site
from tailrace.cli.errors import CommandError


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    settings.check()
    tls = _tls_context(settings)
    try:
        asyncio.run(_serve(settings, tls, ends_with_input=options.ends_with_input))
    except OSError as error:
        raise CommandError(f"--listen {settings.host}:{settings.port}: {error.strerror or error}") from error
    return 0


def settings_of(options: argparse.Namespace) -> ConsoleSettings:
    if not options.login:  # else the visitors bring the user and the password
        check_connection(options)
    host, port = split_address(options.listen)
    if options.data is not None and not Path(options.data).is_dir():
        raise CommandError(f"--data {options.data}: there is no such directory")
    return ConsoleSettings(
        host=host,
        port=port,
        connection=tuple(_connection(options)),
        data=options.data,
        metrics=options.metrics,
        may_write=options.console_write,
        has_login=options.login,
        tls_certificate=options.tls_certificate,
        tls_key=options.tls_key,
        schema_registry=options.schema_registry,
        lag_every_s=None if options.login or not options.lag_every else options.lag_every,
        host_names=tuple(options.host_name),
    )


def _connection(options: argparse.Namespace) -> list[str]:
    """Return the options of the connection, for each command that the page runs."""
    words = []
    for name in ("bootstrap", "profile", "command_config"):
        value = getattr(options, name)
        if value is not None:
            words.append(f"--{name.replace('_', '-')}={value}")
    return words + [f"-X{setting}" for setting in options.client_settings]


def _tls_context(settings: ConsoleSettings) -> ssl.SSLContext | None:
    if settings.tls_certificate is None:
        if settings.tls_key is not None:
            raise CommandError("--tls-key needs --tls-certificate FILE")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(settings.tls_certificate, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise CommandError(f"--tls-certificate {settings.tls_certificate}: {error.strerror or error}") from error
    return context


async def _serve(settings: ConsoleSettings, tls: ssl.SSLContext | None, *, ends_with_input: bool) -> None:
    site = Site(settings, CommandRunner(), time.monotonic)
    server = HttpServer(site.respond, tls)
    port = await server.listen(settings.host, settings.port)
    serving = asyncio.ensure_future(server.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # Windows: Ctrl-C is a KeyboardInterrupt
            loop.add_signal_handler(number, serving.cancel)
    if ends_with_input:
        _end_with(serving, loop)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    mode = "changes are allowed" if settings.may_write else "read-only"
    print(f"tailrace console at http{'s' * (tls is not None)}://{host}:{port}/ ({mode})", flush=True)
    recording = asyncio.ensure_future(site.record_history())
    with suppress(asyncio.CancelledError):
        await serving
    recording.cancel()
    await asyncio.gather(recording, return_exceptions=True)


def _end_with(serving: asyncio.Future[None], loop: asyncio.AbstractEventLoop) -> None:
    """End the console when the broker beside it has ended, even if that was killed: its end of the pipe closes."""
    import threading

    def wait() -> None:
        with suppress(OSError, ValueError):
            sys.stdin.buffer.read()
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(serving.cancel)

    threading.Thread(target=wait, name="end-of-input", daemon=True).start()

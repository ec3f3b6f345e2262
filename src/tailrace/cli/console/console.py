"""`tailrace console`: serve the page until SIGTERM, SIGINT, or the end of the broker beside it."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from ssl import SSLContext

from tailrace.cli.connection.client_properties import given_settings
from tailrace.cli.connection.connecting import check_connection
from tailrace.cli.connection.profiles import chosen_profile
from tailrace.cli.console.command_process import CommandRunner
from tailrace.cli.console.console_arguments import DEFAULT_LAG_EVERY_S
from tailrace.cli.console.console_settings import ConsoleSettings, check_login, split_address
from tailrace.cli.console.http_server import HttpServer
from tailrace.cli.console.site import Site
from tailrace.cli.errors import CommandError


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    settings.check()
    tls = settings.tls_context()
    try:
        asyncio.run(_serve(settings, tls, ends_with_input=options.ends_with_input))
    except OSError as error:
        raise CommandError(f"--listen {settings.host}:{settings.port}: {error.strerror or error}") from error
    return 0


def settings_of(options: argparse.Namespace) -> ConsoleSettings:
    if options.login:  # the visitors bring the user and the password
        check_login(given_settings(chosen_profile(options), options.command_config, options.client_settings))
    else:
        check_connection(options)
    host, port = split_address(options.listen)
    for path in options.data:
        if not Path(path).is_dir():
            raise CommandError(f"--data {path}: there is no such directory")
    return ConsoleSettings(
        host=host,
        port=port,
        connection=tuple(_connection(options)),
        data=tuple(options.data),
        metrics=options.metrics,
        may_write=options.console_write,
        has_login=options.login,
        tls_certificate=options.tls_certificate,
        tls_key=options.tls_key,
        schema_registry=options.schema_registry,
        lag_every_s=_lag_every_s(options),
        host_names=tuple(options.host_name),
    )


def _lag_every_s(options: argparse.Namespace) -> float | None:
    """Return the interval of the recording; None if there is none. A console with a login has no user itself."""
    if options.login:
        return None
    return DEFAULT_LAG_EVERY_S if options.lag_every is None else options.lag_every or None


def _connection(options: argparse.Namespace) -> list[str]:
    """Return the options of the connection, for each command that the page runs."""
    words = []
    for name in ("bootstrap", "profile", "command_config"):
        value = getattr(options, name)
        if value is not None:
            words.append(f"--{name.replace('_', '-')}={value}")
    return words + [f"-X{setting}" for setting in options.client_settings]


async def _serve(settings: ConsoleSettings, tls: SSLContext | None, *, ends_with_input: bool) -> None:
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

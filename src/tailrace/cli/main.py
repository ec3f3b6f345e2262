"""The entry point of `tailrace`: parse the arguments, run the command, turn an exception into an exit status.

Exit status:
  0    success
  1    the command found problems (a damaged log, an unhealthy cluster), or a broker refused the request
  2    the command could not run: a wrong option, or no such directory, topic or broker
  3    internal error
  130  interrupted

An error is one sentence on standard error. Only argparse is imported here; a command's modules are imported when it
runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from tailrace.cli.errors import CommandError
from tailrace.cli.parser import build_parser

USAGE_ERROR = 2
INTERRUPTED = 130
INTERNAL_ERROR = 3


def main(arguments: Sequence[str] | None = None) -> int:
    parser = build_parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as end:  # argparse has printed its help or an error
        return end.code if isinstance(end.code, int) else USAGE_ERROR
    module, _, function = options.run.partition(":")
    try:
        status: int = getattr(import_module(module), function)(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader of standard output has closed it. Redirect it, or the interpreter's final flush fails as well.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        return _report(error)


def _report(error: Exception) -> int:
    """Print an error and return the exit status."""
    from tailrace.cli.output import warn
    from tailrace.log.inspect.findings import CannotLook
    from tailrace.records.batch import CorruptBatch

    if isinstance(error, CorruptBatch):  # the inspected log is damaged; the command itself was correct
        warn(str(error))
        return 1
    if isinstance(error, OSError):
        text = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
    elif isinstance(error, CommandError | CannotLook):
        text = str(error)
    elif os.environ.get("TAILRACE_DEBUG"):
        raise error
    else:
        message = f"internal error; please report it: {type(error).__name__}: {error}".replace("\n", " ")
        print(f"tailrace: {message} (set TAILRACE_DEBUG=1 for the traceback)", file=sys.stderr)
        return INTERNAL_ERROR
    warn(text)
    return error.status if isinstance(error, CommandError) else USAGE_ERROR


if __name__ == "__main__":
    raise SystemExit(main())

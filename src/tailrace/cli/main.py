"""`tailrace`: one sub-command per noun.

Exit status: 0 when all is well, 1 when problems were found in what was looked at or a broker refused something, 2 when
the question itself cannot be answered (a wrong option, no such directory, topic or broker), 130 when interrupted. An
error is one sentence on standard error.

Only argparse is imported here; a command's own modules are imported when it runs.
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
    except SystemExit as end:  # argparse has printed its help or its complaint
        return end.code if isinstance(end.code, int) else USAGE_ERROR
    module, _, function = options.run.partition(":")
    try:
        status: int = getattr(import_module(module), function)(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever read our output has seen enough. The interpreter would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        return _complain(error)


def _complain(error: Exception) -> int:
    from tailrace.cli.output import warn
    from tailrace.log.inspect.findings import CannotLook
    from tailrace.records.batch import CorruptBatch

    if isinstance(error, CorruptBatch):  # damage in what was looked at, not a mistake of the question
        warn(str(error))
        return 1
    if isinstance(error, OSError):
        text = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
    elif isinstance(error, CommandError | CannotLook):
        text = str(error)
    elif os.environ.get("TAILRACE_DEBUG"):
        raise error
    else:
        what = f"{type(error).__name__}: {error}"
        print(
            f"tailrace: a mistake in tailrace itself: {what} (TAILRACE_DEBUG=1 shows where)".replace("\n", " "),
            file=sys.stderr,
        )
        return INTERNAL_ERROR
    warn(text)
    return error.status if isinstance(error, CommandError) else USAGE_ERROR


if __name__ == "__main__":
    raise SystemExit(main())

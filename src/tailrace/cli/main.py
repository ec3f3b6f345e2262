"""The entry point of `tailrace`: parse the arguments, run the command, turn an exception into an exit status.

Exit status:
  0    success
  1    the command found problems (a damaged log, an unhealthy cluster), or a broker refused the request
  2    the command could not run: a wrong option, or no such directory, topic or broker
  3    internal error
  130  interrupted

An error is one sentence on standard error, or one JSON object if the command has --json. A command's modules are
imported when it runs. The parser is imported when `main` is called, because Ctrl-C may arrive during that import.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from tailrace.cli.errors import USAGE_ERROR, CommandError, explain_missing_module, os_error_text

INTERNAL_ERROR = 3
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        _open_closed_streams()
        return _run(arguments)
    except KeyboardInterrupt:
        # If the signal arrived inside the exec() of a text, as dataclasses and our messages use, CPython would end
        # `python -m tailrace` by that signal, whatever we return. The next exec() clears its note of the interrupt.
        exec("")
        print(file=sys.stderr)
        return INTERRUPTED


def _run(arguments: Sequence[str] | None) -> int:
    """Run the command and return its exit status."""
    from tailrace.cli.output import use_json_errors
    from tailrace.cli.parsing.parser import build_parser

    use_json_errors(False)
    try:
        options = build_parser().parse_args(arguments)
        use_json_errors(getattr(options, "json", False))
        module, _, function = options.run.partition(":")
        status: int = getattr(import_module(module), function)(options)
        sys.stdout.flush()
        return status
    except SystemExit as end:  # the parser has printed its help or an error
        return end.code if isinstance(end.code, int) else USAGE_ERROR
    except BrokenPipeError:
        # The reader of standard output has closed it. Redirect it, or the interpreter's final flush fails as well.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _report(error)


def _open_closed_streams() -> None:
    """Redirect closed standard streams (`>&-`) to the null device. Otherwise a socket could get their descriptors."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  # open until the end


def _report(error: Exception) -> int:
    """Print an error and return the exit status."""
    from tailrace.cli.output import report_error
    from tailrace.log.inspect.findings import InspectionFailed
    from tailrace.records.batch import CorruptBatch

    text, status, code = str(error), USAGE_ERROR, None
    if isinstance(error, CorruptBatch):
        status = 1  # the inspected log is damaged; the command itself was correct
    elif isinstance(error, OSError):
        text = os_error_text(error)
    elif isinstance(error, CommandError):
        status, code = error.status, error.code
    elif isinstance(error, ModuleNotFoundError) and (remedy := explain_missing_module(error)):
        text = remedy
    elif not isinstance(error, InspectionFailed):
        if os.environ.get("TAILRACE_DEBUG"):
            raise error
        text = f"internal error; please report it: {type(error).__name__}: {error}".replace("\n", " ")
        text, status = f"{text} (set TAILRACE_DEBUG=1 for the traceback)", INTERNAL_ERROR
    report_error(text, status, code=code)
    return status


if __name__ == "__main__":
    raise SystemExit(main())

"""`tailrace completion`: print a script that completes commands in bash or zsh, made by shtab."""

from __future__ import annotations

import argparse

from tailrace.cli.errors import CommandError
from tailrace.cli.output import print_lines


def run(options: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise CommandError("completion needs shtab: pip install 'tailrace[completion]'") from None
    from tailrace.cli.parsing.parser import build_parser

    print_lines(shtab.complete(build_parser(), shell=options.shell))
    return 0

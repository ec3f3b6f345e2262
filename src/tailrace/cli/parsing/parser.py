"""The parser of the command line: every command with its options and its help.

Each parser names the function that runs its command as `module:function`. Help is shown without importing the command.
"""

from __future__ import annotations

import argparse

import tailrace
from tailrace.cli.access.acls_arguments import add_acls
from tailrace.cli.access.quotas_arguments import add_quotas
from tailrace.cli.access.users_arguments import add_users
from tailrace.cli.admin.admin_arguments import add_configs, add_offsets, add_topics
from tailrace.cli.admin.groups_arguments import add_groups
from tailrace.cli.admin.transactions_arguments import add_transactions
from tailrace.cli.cluster.cluster_arguments import add_cluster_noun
from tailrace.cli.cluster.migrate_arguments import add_migrate
from tailrace.cli.cluster.reassign_arguments import add_elect, add_reassign
from tailrace.cli.cluster.tier_arguments import add_tier
from tailrace.cli.console.console_arguments import add_console
from tailrace.cli.jobs.job_arguments import add_job
from tailrace.cli.log.log_arguments import add_log
from tailrace.cli.parsing.command_parser import CommandParser
from tailrace.cli.parsing.options import Parsers, described
from tailrace.cli.records.records_arguments import add_consume, add_produce
from tailrace.cli.serving.serving_arguments import add_explain, add_serve, add_shards, add_top


def build_parser() -> argparse.ArgumentParser:
    parser = described(
        CommandParser(prog="tailrace"),
        "A Kafka-compatible broker in Python whose logs can be queried directly from Spark.",
        """
        examples:
          tailrace serve --data ./data --port 9092     start a broker for Kafka clients
          tailrace topics create orders                create a topic on it (or on any Kafka cluster)
          echo hello | tailrace produce orders         write a record
          tailrace consume orders --follow             read records as they arrive
          tailrace tour                                take a guided tour of the log, in a temporary directory
          tailrace log ls /var/lib/kafka               list the partitions in a data directory
          tailrace log cat /var/lib/kafka --topic orders --json
          tailrace log explain /var/lib/kafka/orders-0 --offset 4711

        The `tailrace log` commands read data directories; they work with and without a running broker.
        Exit status: 0 success, 1 problems found or request refused, 2 wrong usage or not found, 3 internal error,
        130 interrupted.
        """,
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="print the version, and if the kernels are compiled"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_serve(commands)
    add_cluster_noun(commands)
    add_topics(commands)
    add_configs(commands)
    add_produce(commands)
    add_consume(commands)
    add_offsets(commands)
    add_groups(commands)
    add_transactions(commands)
    add_acls(commands)
    add_users(commands)
    add_quotas(commands)
    add_reassign(commands)
    add_elect(commands)
    add_shards(commands)
    add_top(commands)
    add_explain(commands)
    add_console(commands)
    add_migrate(commands)
    add_tier(commands)
    add_log(commands)
    add_job(commands)
    _add_tour(commands)
    _add_completion(commands)
    return parser


class _Version(argparse.Action):
    """The option --version. The kernels are looked up only if it is given."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from tailrace.model.kernel_forms import describe_kernels

        print(f"tailrace {tailrace.__version__} ({describe_kernels()})")
        parser.exit()


def _add_completion(commands: Parsers) -> None:
    completion = described(
        commands.add_parser("completion", help="print a script that completes commands in a shell"),
        "Print a script that completes commands and options in bash or zsh. It needs the extra `completion`.",
        """
        examples:
          pip install 'tailrace[completion]'
          source <(tailrace completion bash)     in bash; for every shell, add this line to ~/.bashrc
          mkdir -p ~/.zfunc && tailrace completion zsh > ~/.zfunc/_tailrace

        zsh needs `fpath+=(~/.zfunc)` before `autoload -U compinit && compinit` in ~/.zshrc.
        """,
    )
    completion.add_argument("shell", choices=("bash", "zsh"), help="shell to print the script for")
    completion.set_defaults(run="tailrace.cli.parsing.completion:run")


def _add_tour(commands: Parsers) -> None:
    tour = described(
        commands.add_parser("tour", help="a guided tour of the log: write, roll, look up, explain a read"),
        "Write a topic, roll segments, look records up by offset and by time, explain a read, and show the files.",
        """
        examples:
          tailrace tour
          tailrace tour /tmp/tour
        """,
    )
    tour.add_argument("directory", metavar="DIR", nargs="?", help="directory to write to (default: a temporary one)")
    tour.set_defaults(run="tailrace.cli.tour:run")

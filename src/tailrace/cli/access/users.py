"""`tailrace users`: list, set and remove SCRAM credentials."""

from __future__ import annotations

import argparse

from tailrace.cli.access.password_input import read_password
from tailrace.cli.connection.connecting import connected
from tailrace.cli.errors import CommandError
from tailrace.cli.output import json_document, print_lines, table
from tailrace.client.access.scram_users import (
    ScramUser,
    list_scram_users,
    remove_scram_credentials,
    set_scram_password,
)


def run_list(options: argparse.Namespace) -> int:
    with connected(options) as cluster:
        users = list_scram_users(cluster)
    if options.json:
        print_lines(json_document({"users": [user._asdict() for user in users]}))
    elif users:
        print_lines(*table(["<USER", "<MECHANISM", "ITERATIONS"], users))
    else:
        print_lines("there are no SCRAM users")
    return 0


def run_set(options: argparse.Namespace) -> int:
    _check_name(options.user)
    password = read_password(options.password_file, options.user)
    user = ScramUser(options.user, options.mechanism, options.iterations)
    with connected(options) as cluster:
        set_scram_password(cluster, user, password)
    if options.json:
        print_lines(json_document({"set": user._asdict()}))
    else:
        print_lines(f"{user.name}: password set for {user.mechanism}")
    return 0


def run_remove(options: argparse.Namespace) -> int:
    _check_name(options.user)
    with connected(options) as cluster:
        found = [user.mechanism for user in list_scram_users(cluster) if user.name == options.user]
        mechanisms = [one for one in found if options.mechanism in (None, one)]
        if not mechanisms:
            what = "SCRAM credentials" if options.mechanism is None else f"credential for {options.mechanism}"
            raise CommandError(f"user {options.user} has no {what}")
        remove_scram_credentials(cluster, options.user, mechanisms)
    if options.json:
        print_lines(json_document({"removed": {"name": options.user, "mechanisms": mechanisms}}))
    else:
        print_lines(f"{options.user}: {' and '.join(mechanisms)} removed")
    return 0


def _check_name(name: str) -> None:
    if not name.strip():
        raise CommandError("the name of the user is empty")

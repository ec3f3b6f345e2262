"""The commands that the page may run, and the parameters that each of them takes.

A request for /api/topics/describe?arg=orders runs `tailrace topics describe --json -- orders`. A parameter `arg` is an
argument of the command, every other one an option with the same name. Only commands and parameters of the table are
accepted, so a request can neither name a file nor choose another cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

ARGUMENT: Final = "arg"
VALUE_LENGTH_MAX: Final = 4_096
_TRUE: Final = ("", "true", "1")


class Form(Enum):
    """The form in which a command prints its results with --json."""

    DOCUMENT = "one JSON document"
    LINES = "a JSON object per line"
    STREAM = "a JSON object per line, until it is stopped"
    FILE = "the bytes of a file"


class Source(Enum):
    """The place that a command reads from."""

    CLUSTER = "the cluster, as a client"
    DATA = "the data directory of the broker"
    METRICS = "the metrics of the broker"


class InvalidCommand(Exception):
    """A command or a parameter that the table does not have."""


@dataclass(frozen=True, slots=True)
class Command:
    words: tuple[str, ...]
    arguments: range = range(1)  # how many arguments it takes
    options: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    view: str = ""  # distinguishes commands with the same words
    form: Form = Form.DOCUMENT
    source: Source = Source.CLUSTER
    fixed: tuple[str, ...] = ()
    changes: bool = False
    reads_text: bool = False  # from standard input: the body of the request
    is_shared: bool = False  # visitors with the same rights share one answer, which may be a moment old

    @property
    def name(self) -> str:
        """The words by which a request names the command."""
        return " ".join((*self.words, *self.view.split(), *(("live",) if self.form is Form.STREAM else ())))

    def words_for(self, parameters: Sequence[tuple[str, str]]) -> list[str]:
        """Return the words of a command line without the connection. Raise InvalidCommand."""
        named: list[str] = []
        arguments: list[str] = []
        for name, value in parameters:
            if len(value) > VALUE_LENGTH_MAX or "\0" in value:
                raise InvalidCommand(f"{name}: a value has at most {VALUE_LENGTH_MAX} characters, and no NUL")
            if name == ARGUMENT:
                arguments.append(value)
            elif name in self.options:
                named.append(f"--{name}={value}")
            elif name in self.flags and value in _TRUE:
                named.append(f"--{name}")
            else:
                raise InvalidCommand(f"{' '.join(self.words)}: the console does not pass on {name!r}")
        if len(arguments) not in self.arguments:
            raise InvalidCommand(f"{' '.join(self.words)}: {len(arguments)} arguments are too few or too many")
        form = () if self.form is Form.FILE else ("--json",)
        words = [*self.words, *self.fixed, *form, *named]
        return [*words, "--", *arguments] if arguments else words


_ONE = range(1, 2)
_SOME = range(1, 1_001)
_ANY = range(1_001)
_RECORDS = frozenset({"partition", "from", "max", "isolation", "encoding", "key", "grep", "header", "where"})
_PARTITION = frozenset({"topic", "partition"})
_MORE = frozenset({"more"})
_TIMES = frozenset({"times"})


COMMANDS: Final[Mapping[str, Command]] = {
    command.name: command
    for command in (
        Command(("cluster", "status"), options=frozenset({"topic"}), flags=frozenset({"all"}), is_shared=True),
        Command(
            ("cluster", "status"),
            options=frozenset({"topic"}),
            form=Form.STREAM,
            fixed=("--watch=1",),
            is_shared=True,
        ),
        Command(("cluster", "queries"), is_shared=True),
        Command(("topics", "list"), flags=frozenset({"internal"})),
        Command(("topics", "describe"), _ANY, flags=frozenset({"unhealthy"})),
        Command(
            ("configs", "describe"), _ANY, options=frozenset({"topic", "broker"}), flags=frozenset({"all", "explain"})
        ),
        Command(("offsets",), _ANY, options=frozenset({"partition", "at"}), flags=frozenset({"max-timestamp"})),
        Command(("groups", "list"), is_shared=True),
        Command(("groups", "describe"), _SOME, flags=_TIMES, is_shared=True),
        Command(("groups", "lag"), _ANY, flags=_TIMES, is_shared=True),
        Command(("transactions", "list"), options=frozenset({"state"})),
        Command(("transactions", "describe"), _SOME),
        Command(("transactions", "find-hanging")),
        Command(("acls", "list")),
        Command(("users", "list")),
        Command(("quotas", "list")),
        Command(("reassign", "status")),
        Command(("consume",), _ONE, options=_RECORDS, flags=_MORE, form=Form.LINES),
        Command(("consume",), _ONE, options=_RECORDS, flags=_MORE, form=Form.STREAM, fixed=("--follow",)),
        Command(("consume",), _ONE, _RECORDS, flags=_MORE, view="search", form=Form.STREAM, fixed=("--progress",)),
        Command(("consume",), _ONE, options=_RECORDS, view="parquet", form=Form.FILE, fixed=("--parquet=-",)),
        Command(("explain", "waiting"), source=Source.METRICS, is_shared=True),
        Command(("top",), form=Form.STREAM, options=frozenset({"interval"}), source=Source.METRICS, is_shared=True),
        Command(("log", "ls"), options=_PARTITION, flags=frozenset({"segments"}), source=Source.DATA),
        Command(("log", "map"), options=_PARTITION | {"config"}, source=Source.DATA),
        Command(
            ("log", "explain"),
            options=_PARTITION | {"offset", "timestamp", "max-bytes", "isolation"},
            source=Source.DATA,
        ),
        Command(
            ("log", "dump"),
            options=_PARTITION | {"only", "max-bytes", "segment", "from-byte"},
            form=Form.LINES,
            source=Source.DATA,
        ),
        Command(
            ("topics", "create"),
            _ONE,
            options=frozenset({"partitions", "replication-factor", "config"}),
            flags=frozenset({"dry-run"}),
            changes=True,
        ),
        Command(("topics", "delete"), _ONE, changes=True),
        Command(("topics", "alter"), _ONE, options=frozenset({"partitions"}), changes=True),
        Command(("topics", "trim"), _ONE, frozenset({"before", "partition"}), frozenset({"yes"}), changes=True),
        Command(("configs", "set"), _SOME, options=frozenset({"topic", "broker"}), changes=True),
        Command(("configs", "unset"), _SOME, options=frozenset({"topic", "broker"}), changes=True),
        Command(
            ("groups", "reset"),
            _ONE,
            options=frozenset({"topic", "to-offset", "to-datetime", "by-duration", "shift-by"}),
            flags=frozenset({"to-earliest", "to-latest", "to-current", "yes", "dry-run", "share"}),
            changes=True,
        ),
        Command(("groups", "delete"), _ONE, changes=True),
        Command(
            ("produce",),
            _ONE,
            options=frozenset({"partition", "encoding"}),
            flags=frozenset({"repartition"}),
            changes=True,
            reads_text=True,
        ),
        Command(("transactions", "abort"), _ONE, options=frozenset({"start-offset"}), changes=True),
    )
}


def find_command(path: str) -> Command:
    """Return the command of a path such as topics/describe. Raise InvalidCommand."""
    command = COMMANDS.get(path.replace("/", " "))
    if command is None:
        raise InvalidCommand(f"the console does not run `tailrace {path.replace('/', ' ')}`")
    return command

"""The input and the result of a controller's decision.

A decision is a plain function. It takes a `ControlState` and a request, and returns a `Plan`: the records to write and
the response to send once they are durable. It writes nothing itself, so the same code serves one broker or many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from tailrace.metadata.decisions.replicas.replica_placement import NextInt
from tailrace.metadata.image.effective_config import EffectiveConfigs
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.configs.config_definitions import definition
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId
from tailrace.protocol.message import Message

T = TypeVar("T")
# Charges partitions to be created or deleted to the controller mutation quota. Raises KafkaError if the quota is
# exceeded.
Charge: TypeAlias = Callable[[int], None]

MAX_RECORDS: Final = 10_000  # in the plan of one request; also the limit of partitions that a request may create


class Plan(NamedTuple, Generic[T]):
    records: list[Message]
    result: T


class ApiError(NamedTuple):
    """The error of one item of a request. An item that succeeded has `NO_ERROR`."""

    code: ErrorCode
    message: str | None = None

    @classmethod
    def of(cls, error: KafkaError) -> ApiError:
        text = str(error)
        return cls(error.code, None if text == error.code.name else text)


NO_ERROR: Final = ApiError(ErrorCode.NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlState:
    image: MetadataImage
    configs: EffectiveConfigs
    new_id: Callable[[], bytes]  # 16 raw bytes, different at each call
    next_int: NextInt

    @property
    def default_partitions(self) -> int:
        return self.static_int("num.partitions")

    @property
    def default_replication_factor(self) -> int:
        return self.static_int("default.replication.factor")

    def static_flag(self, name: str) -> bool:
        key = definition("broker")[name]
        return key.parse(self.configs.static.get(name, key.default)) is True

    def static_int(self, name: str) -> int:
        key = definition("broker")[name]
        value = key.parse(self.configs.static.get(name, key.default))
        assert isinstance(value, int)
        return value

    def active_among(self, brokers: list[BrokerId]) -> list[BrokerId]:
        return [one for one in brokers if self.image.is_active(one)]


def free_of_charge(partitions: int) -> None:
    """Charge nothing: creating and deleting partitions is not limited by a quota."""


def check_size(records: list[Message]) -> None:
    """Raise POLICY_VIOLATION if the records of a request exceed MAX_RECORDS."""
    if len(records) > MAX_RECORDS:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"the request needs {len(records)} metadata records; the limit is {MAX_RECORDS}: split it into several",
        )

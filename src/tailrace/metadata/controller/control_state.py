"""What the controller's decisions are made from and what they come to.

A decision is a plain function: a `ControlState` and a request in, a `Plan` out, which is the records to write and the
answer to give once they are durable. It writes nothing and changes nothing, and serves one broker as well as many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from tailrace.metadata.decisions.replica_placement import NextInt
from tailrace.metadata.image.effective_config import EffectiveConfigs
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.configs.config_definitions import definition
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId
from tailrace.protocol.message import Message

T = TypeVar("T")
# Told how many partitions are about to be created or deleted; a KafkaError refuses.
Charge: TypeAlias = Callable[[int], None]

MAX_RECORDS: Final = 10_000  # that one request may come to; also the partitions it may create


class Plan(NamedTuple, Generic[T]):
    records: list[Message]
    result: T


class ApiError(NamedTuple):
    """How one item of a request fared."""

    code: ErrorCode
    message: str | None = None

    @classmethod
    def of(cls, error: KafkaError) -> ApiError:
        said = str(error)
        return cls(error.code, None if said == error.code.name else said)


NO_ERROR: Final = ApiError(ErrorCode.NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlState:
    image: MetadataImage
    configs: EffectiveConfigs
    new_id: Callable[[], bytes]  # 16 raw bytes, never twice the same
    next_int: NextInt

    @property
    def default_partitions(self) -> int:
        return self.static_int("num.partitions")

    @property
    def default_replication_factor(self) -> int:
        return self.static_int("default.replication.factor")

    def static_int(self, name: str) -> int:
        key = definition("broker")[name]
        value = key.parse(self.configs.static.get(name, key.default))
        assert isinstance(value, int)
        return value

    def active_among(self, brokers: list[BrokerId]) -> list[BrokerId]:
        return [one for one in brokers if self.image.is_active(one)]


def free_of_charge(partitions: int) -> None:
    """No quota on creating and deleting partitions."""


def check_size(records: list[Message]) -> None:
    """No request is carried out that would come to more than one batch of records."""
    if len(records) > MAX_RECORDS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "the request would change too much at once")

"""`quorum-state`: who this node last knew as the quorum's leader, or voted for, and in which epoch.

One line of JSON. Version 1 goes with kraft.version 1; version 0, with the voters in it, with kraft.version 0.

    {"leaderId":1,"leaderEpoch":7,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tailrace.log.disk.checkpoints import CorruptCheckpoint
from tailrace.log.disk.files import Files, write_atomically
from tailrace.model.ids import LeaderEpoch

QUORUM_STATE = "quorum-state"
_NOBODY = "AAAAAAAAAAAAAAAAAAAAAA"


@dataclass(frozen=True, slots=True)
class QuorumState:
    leader_id: int = -1
    leader_epoch: LeaderEpoch = 0
    voters: tuple[int, ...] = ()  # only version 0 tells them

    @classmethod
    def read(cls, files: Files, path: str) -> QuorumState | None:
        """None before the first election."""
        if not files.exists(path):
            return None
        try:
            told = json.loads(files.read(path))
            if told["data_version"] not in (0, 1):
                raise CorruptCheckpoint(path, f"unknown version {told['data_version']!r}")
            voters = tuple(int(one["voterId"]) for one in told.get("currentVoters", ()))
            return cls(int(told["leaderId"]), int(told["leaderEpoch"]), voters)
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptCheckpoint(path, f"malformed: {error!r}") from None

    def write(self, files: Files, path: str, kraft_version: int) -> None:
        told: dict[str, Any] = {"leaderId": self.leader_id, "leaderEpoch": self.leader_epoch, "votedId": -1}
        if kraft_version >= 1:
            told |= {"votedDirectoryId": _NOBODY, "data_version": 1}
        else:
            voters = [{"voterId": one} for one in self.voters or (self.leader_id,)]
            told = {"clusterId": "", **told, "appliedOffset": 0, "currentVoters": voters, "data_version": 0}
        write_atomically(files, path, json.dumps(told, separators=(",", ":")).encode())

"""`quorum-state`: the latest known leader of the quorum, its epoch, and this node's vote.

One line of JSON. kraft.version 1 uses version 1; kraft.version 0 uses version 0, which contains the voters.

    {"leaderId":1,"leaderEpoch":7,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tailrace.log.disk.checkpoints import CorruptCheckpoint, parse_json
from tailrace.log.disk.files import Files, write_atomically
from tailrace.model.ids import LeaderEpoch

QUORUM_STATE = "quorum-state"
_NOBODY = "AAAAAAAAAAAAAAAAAAAAAA"


@dataclass(frozen=True, slots=True)
class QuorumState:
    leader_id: int = -1
    leader_epoch: LeaderEpoch = 0
    voters: tuple[int, ...] = ()  # only in version 0

    @classmethod
    def read(cls, files: Files, path: str) -> QuorumState | None:
        """Read the file. Return None if there is none, before the first election."""
        if not files.exists(path):
            return None
        try:
            content = parse_json(files.read(path))
            if content["data_version"] not in (0, 1):
                raise CorruptCheckpoint(path, f"unknown version {content['data_version']!r}")
            voters = tuple(int(one["voterId"]) for one in content.get("currentVoters", ()))
            return cls(int(content["leaderId"]), int(content["leaderEpoch"]), voters)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptCheckpoint(path, f"malformed: {error!r}") from None

    def write(self, files: Files, path: str, kraft_version: int) -> None:
        content: dict[str, Any] = {"leaderId": self.leader_id, "leaderEpoch": self.leader_epoch, "votedId": -1}
        if kraft_version >= 1:
            content |= {"votedDirectoryId": _NOBODY, "data_version": 1}
        else:
            voters = [{"voterId": one} for one in self.voters or (self.leader_id,)]
            content = {"clusterId": "", **content, "appliedOffset": 0, "currentVoters": voters, "data_version": 0}
        write_atomically(files, path, json.dumps(content, separators=(",", ":")).encode())

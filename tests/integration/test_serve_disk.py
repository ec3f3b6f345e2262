"""`tailrace serve` on a full disk: how the process ends, and its output."""

from __future__ import annotations

from pathlib import Path

from tailrace.protocol import messages as m
from tests.support.api_twins import KafkaSide
from tests.support.tailrace_process import STOP_TIMEOUT_S, TailraceProcess

# No file may be longer than 64 KB, so that writes fail as on a full disk. Python must not leave half-written bytecode.
SHORT_FILES = ["sh", "-c", 'ulimit -f 128 && export PYTHONDONTWRITEBYTECODE=1 && exec "$@"', "sh"]


def user(number: int) -> str:
    return f"{number:04}" + "x" * 5_000


def test_a_metadata_log_that_cannot_be_written_ends_the_process_with_status_1_and_one_line(tmp_path: Path) -> None:
    request = m.AlterClientQuotasRequest()
    limit = request.OpData(key="producer_byte_rate", value=1e6)
    made = 0
    with TailraceProcess(tmp_path / "data", wrapper=SHORT_FILES) as broker:
        wire = KafkaSide(broker.port)
        process = broker.process
        assert process is not None
        for number in range(20):
            entity = request.EntityData(entity_type="user", entity_name=user(number))
            request.entries = [request.EntryData(entity=[entity], ops=[limit])]
            answer = wire.ask(request, 1)
            if answer is None:  # closed: the response has no field for the error
                break
            made += answer.entries[0].error_code == 0
        assert 5 < made < 15
        assert process.wait(STOP_TIMEOUT_S) == 1
        output = broker.errors.splitlines()
        assert len(output) == 2, output  # in the log, and as the last line of the command
        assert all(
            f"{tmp_path / 'data'}, which has the metadata log, has failed: [Errno 27]" in line for line in output
        )
        assert "CRITICAL" in output[0]
    with TailraceProcess(tmp_path / "data") as broker:  # acknowledged changes are there
        described = KafkaSide(broker.port).ask(m.DescribeClientQuotasRequest(components=[]), 1)
        names = {one.entity[0].entity_name for one in described.entries}
        assert {user(number) for number in range(made)} <= names

"""Write the golden record bytes of tests/formats/data/records again with Apache Kafka.

python -m scripts.make_record_goldens
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from tests.formats.record_cases import DATA, START_MS, batch_cases, codec_cases, rows, sample
from tests.support.kafka_install import kafka_installation, kafka_version
from tests.support.log_oracle import LogOracle
from tests.support.oracle_types import OracleRecord

KEPT_WHOLE = 120  # bytes; longer ones are kept as a digest


def main() -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    with LogOracle(kafka_installation()) as oracle:
        write("codecs.json", [codec_answer(oracle, case) for case in codec_cases()])
        write("batches.json", [batch_answer(oracle, case) for case in batch_cases()])
        write("control.json", control_answers(oracle))


def write(name: str, cases: list[dict[str, Any]]) -> None:
    """Write one case per line, so that a change is visible."""
    lines = ",\n".join(json.dumps(case) for case in cases)
    (DATA / name).write_text(f'{{"kafka": "{kafka_version()}", "cases": [\n{lines}\n]}}\n')


def codec_answer(oracle: LogOracle, case: dict[str, Any]) -> dict[str, Any]:
    data = sample(case["kind"], case["size"])
    packed = oracle.compress(data, case["codec"], level=case["level"], magic=case["magic"])
    answer = {**case, "length": len(packed), "sha256": hashlib.sha256(packed).hexdigest()}
    return {**answer, "bytes": packed.hex()} if len(packed) <= KEPT_WHOLE else answer


def batch_answer(oracle: LogOracle, case: dict[str, Any]) -> dict[str, Any]:
    options = {**case, "log_append_time": START_MS}
    gaps = options.pop("gaps", False)
    records = [
        OracleRecord(key, value, timestamp, tuple((name.encode(), content) for name, content in headers), offset)
        for timestamp, key, value, headers, offset in rows(case["base_offset"], headers=case["magic"] == 2, gaps=gaps)
    ]
    return {**case, "bytes": base64.b64encode(oracle.build_batch(records, **options)).decode()}


def control_answers(oracle: LogOracle) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = []
    for commit in (True, False):
        marker = {"producer_id": 5, "producer_epoch": 3, "timestamp": START_MS, "base_offset": 40, "leader_epoch": 8}
        data = oracle.end_transaction_marker(**marker, commit=commit, coordinator_epoch=6)
        answers.append({"marker": marker, "commit": commit, "coordinator_epoch": 6, "bytes": data.hex()})
    data = oracle.leader_change(2, [1, 2, 3], timestamp=START_MS, leader_epoch=9)
    answers.append({"leader_id": 2, "voters": [1, 2, 3], "leader_epoch": 9, "bytes": data.hex()})
    return answers


if __name__ == "__main__":
    main()

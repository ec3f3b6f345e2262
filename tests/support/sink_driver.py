"""A Spark driver as a process that a test kills. It copies topic `in` to topic `out` with our source and our sink.

    python -m tests.support.sink_driver BOOTSTRAP CHECKPOINT [key=value …]

    per_batch=100    offsets per micro-batch
    deaths=0.001     probability that a worker dies (kill -9) at a row
    stop=yes         end when everything was copied; otherwise run until killed

One line is printed for each micro-batch that Spark reports as done. Workers belong to the driver's process group.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql.functions import udf

from tests.support.spark_session import spark_session, stop_session


def mortal(likelihood: float) -> Callable[[bytes | None], bytes | None]:
    def pass_on(value: bytes | None) -> bytes | None:
        if random.SystemRandom().random() < likelihood:
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    return pass_on


def main(bootstrap: str, checkpoint: str, *settings: str) -> None:
    given = dict(setting.split("=", 1) for setting in settings)
    spark = spark_session(master="local[2,20]")
    source = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": "in",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": given.get("per_batch", "100"),
    }
    rows = spark.readStream.format("tailrace").options(**source).load().select("key", "value")
    if float(given.get("deaths", "0")):
        dying = udf(mortal(float(given["deaths"])), "binary")
        rows = rows.select("key", dying("value").alias("value"))
    sink = {"kafka.bootstrap.servers": bootstrap, "topic": "out", "checkpointLocation": checkpoint}
    writer = rows.writeStream.format("tailrace").options(**sink)
    if "stop" in given:
        writer = writer.trigger(availableNow=True)
    query = writer.start()
    reported = -1
    while query.isActive:
        progress = query.lastProgress
        if progress is not None and progress["batchId"] > reported:
            reported = progress["batchId"]
            print(reported, flush=True)
        time.sleep(0.05)
    problem = query.exception()
    stop_session()
    if problem is not None:
        print(problem, file=sys.stderr)
        sys.exit(1)


def commits(checkpoint: Path) -> int:
    """Return the number of micro-batches that Spark has recorded as done."""
    return max((int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")), default=-1) + 1


if __name__ == "__main__":
    main(*sys.argv[1:])

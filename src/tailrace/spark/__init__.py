"""The log as a Spark table. The package may import client, object_stores, log, records and model. Only it uses pyspark.

sessions.py         session and configure: a Spark that finds this interpreter and `format("tailrace")`
environment.py      prepares Java and Python of the Spark that this process starts
java.py             the Java for Spark's command line
worker_python.py    the Python of Spark's workers
worker_process.py   connections that a worker process keeps between tasks
option_values.py    OptionValues: options checked by name
checkpoint.py       the offsets in the checkpoint of a stream
progress.py         the lag of a stream, from Spark's progress reports
source/             `spark.read.format("tailrace")` and `readStream`
sink/               `df.write.format("tailrace")` and `writeStream`
jobs/               work over whole logs as Spark jobs
tables/             topics as Iceberg and Delta tables
typed/              values and keys as typed columns, and the evolution of schemas
functions/          column functions for values with a schema registry's frame
"""

from tailrace.spark.sessions import configure as configure
from tailrace.spark.sessions import session as session

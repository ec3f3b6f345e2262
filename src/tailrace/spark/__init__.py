"""The log as a Spark table. May import: client, log, records, model; nothing else uses pyspark or pyarrow."""

"""The log as a Spark table. May import: client, object_stores, log, records, model; nothing else uses pyspark."""

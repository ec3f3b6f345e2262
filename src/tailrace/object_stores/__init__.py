"""How Spark and the command line read a log out of a bucket. May import: log, records, model; uses pyarrow."""

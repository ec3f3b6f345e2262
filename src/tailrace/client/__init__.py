"""The batch client: how the command line and Spark reach a cluster. May import: records, protocol, model."""

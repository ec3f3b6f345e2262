"""Reading a log with Spark: what is asked for, which slices of it, and how a task reads one."""

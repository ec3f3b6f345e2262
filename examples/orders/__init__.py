"""Orders and payments: a pipeline from topics to a table and a topic, with a check of every result."""

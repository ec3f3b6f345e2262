"""`df.write.format("tailrace")` and `writeStream`: rows into topics, each once. May import: client, records."""

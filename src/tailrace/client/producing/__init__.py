"""Writes record batches, with idempotence and transactions.

producer.py            BatchProducer: batches to partition leaders, with or without idempotence
sequenced.py           SequencedProducer: batches that already have producer id and sequence, each written once
transactions.py        transactions that one process begins and another may end
transaction_admin.py   lists, describes and aborts transactions for an administrator
partitioner.py         the partition of a key, as Kafka's default partitioner computes it
"""

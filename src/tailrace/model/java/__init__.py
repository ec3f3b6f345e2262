"""Functions of Java's library on which Kafka's file bytes and decisions depend.

java_hash.py    String.hashCode
murmur2.py      the hash of Kafka's clients that chooses partitions
java_order.py   the iteration orders of Java's collections: they order producer snapshots and break ties in assignments
"""

"""Results of Java's library on which Kafka's bytes and choices depend.

java_hash.py         String.hashCode
java_order.py        the order in which a java.util.HashMap lists long keys, which producer snapshots have
java_collections.py  the iteration orders of Java's collections, which decide between equal choices
"""

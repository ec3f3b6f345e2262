"""A broker inside a Python process, for tests, tools and notebooks. Users import it as `tailrace.Broker`.

broker.py        Broker: start, stop, crash, reset, faults
cluster.py       Cluster: several brokers and their controller
topics.py        create_topic: topics that exist when the call returns
emptying.py      delete_topics: a fast way to make a broker empty again
faults.py        injected errors, delays and lost connections
security.py      LocalSecurity: TLS and SASL for a test, and the settings of clients
certificates.py  certificates of an authority that exists as long as the process
"""

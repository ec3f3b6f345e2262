"""Values and rules that every layer shares. May import nothing.

ids.py                identifiers: topics, partitions, offsets, epochs, brokers
errors.py             Kafka's error codes, and KafkaError, which carries one to a client
topic_config.py       TopicConfig: typed topic configs
configs/              the definitions of all config keys, and topic settings
security/             formats of credentials and tokens
listener_settings.py  `listener.name.NAME.key` before `key`
acls.py               Acl and AclFilter
java/                 Java's hash codes and iteration orders
patterns.py           regular expressions of clients, compiled by RE2 and bounded in cost
steps.py              Steps: work as a generator that can pause
shortage.py           errors of a process without free descriptors or memory
kernel_forms.py       compiled and interpreted kernels
system_calls.py       the calls that not every operating system has
log_fields.py         structured fields of log lines
"""

"""Values and rules that every layer shares. May import nothing.

ids.py                 identifiers: topics, partitions, offsets, epochs, brokers
errors.py              Kafka's error codes, and KafkaError, which carries one to a client
topic_config.py        TopicConfig: typed topic configs
listener_settings.py   `listener.name.NAME.key` before `key`
acls.py                Acl and AclFilter
scram.py               SCRAM: keys from passwords, signatures
jaas.py                the text of sasl.jaas.config
pem.py                 PEM text in properties files
jwt.py                 JSON Web Tokens in compact form
oauthbearer.py         the first client message of SASL/OAUTHBEARER
java_hash.py           Java's String.hashCode
patterns.py            regular expressions of clients, compiled by RE2 and bounded in cost
steps.py               Steps: work as a generator that can pause
shortage.py            errors of a process without free descriptors or memory
log_fields.py          structured fields of log lines
"""

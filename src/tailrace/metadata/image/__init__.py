"""The metadata image: immutable, with deltas that make the next one.

records ─► delta.py ─► image.py; snapshots: image_records.py ─► records

image.py                    MetadataImage: the state of the metadata log at one offset
delta.py                    MetadataDelta: records since an image, and what they changed
topic_delta.py              TopicsDelta: the part about topics and partitions
loader.py                   MetadataLoader: committed batches to deltas and images
image_records.py            an image as records, in Kafka's order: the content of a snapshot
partition_registration.py   PartitionRegistration: the state of one partition
registrations.py            BrokerRegistration, ControllerRegistration
features.py                 feature levels: finalized, supported, and their effect on record versions
acl_records.py              the entry that an ACL's record has
effective_config.py         the effective value of a topic's key, and its source
layered_map.py              LayeredMap: a large immutable mapping with cheap changed copies
"""

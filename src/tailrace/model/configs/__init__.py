"""Kafka's configs: keys, types and the parsing of their values.

config_definitions.py   every config key of Kafka's broker: type, default, allowed values (`kafka_configs.json`)
topic_settings.py       converts a topic's settings from strings to a TopicConfig
sentences.json          one sentence for each key, for DescribeConfigs
"""

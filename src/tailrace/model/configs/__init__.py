"""Kafka's configs as texts, and what they mean.

config_definitions.py   every config key of Kafka's broker: type, default, allowed values (`kafka_configs.json`)
topic_settings.py       a topic's settings, as strings, to a TopicConfig
"""

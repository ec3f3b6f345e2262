"""The broker's settings: server.properties, listeners, security, and changes while the broker runs.

properties_file.py     Java's properties files
broker_config.py       BrokerConfig: typed view of server.properties
config_support.py      which of Kafka's broker keys are honoured, have no effect, or are not supported
remote_config.py       RemoteConfig: the settings of tiered storage
role_config.py         Roles: a node that is its own controller, or a broker with separate controllers
listener_config.py     listeners, their addresses and security protocols
listener_keys.py       keys that can be set for one listener
sasl_config.py         SaslSettings: mechanisms and passwords of a listener
oauth_config.py        OauthSettings: rules for the tokens of a listener with OAUTHBEARER
authorizer_config.py   authorizer_of: the configured authorizer
group_limits.py        minimum and maximum of group settings
dynamic_config.py      checks of settings that change while the broker runs
broker_changes.py      checks of such a change against the broker's current settings
setting_sentences.py   one sentence for each setting
config_description.py  configs with their sources, for DescribeConfigs
"""

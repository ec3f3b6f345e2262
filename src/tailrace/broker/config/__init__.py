"""The broker's settings: server.properties, listeners, security, and what may change while the broker runs.

properties_file.py     Java's properties files
broker_config.py       BrokerConfig: typed view of server.properties
config_support.py      what becomes of each of Kafka's broker keys here
role_config.py         Roles: a node that is its own controller, or a broker below other controllers
listener_config.py     listeners, their addresses and security protocols
listener_keys.py       keys that may be set for one listener
sasl_config.py         SaslSettings: mechanisms and passwords of a listener
oauth_config.py        OauthSettings: tokens that a listener with OAUTHBEARER accepts
authorizer_config.py   authorizer_of: the configured authorizer
group_limits.py        limits of group settings
dynamic_config.py      settings that may change while the broker runs
broker_changes.py      checks of such a change against what the broker is now
config_description.py  configs with their sources, for DescribeConfigs
"""

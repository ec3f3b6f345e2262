"""Requests about configs, client quotas and client metrics.

describe_configs.py             DescribeConfigs
alter_configs.py                AlterConfigs
incremental_alter_configs.py    IncrementalAlterConfigs
list_config_resources.py        ListConfigResources
config_authorization.py         refusal: checks of rights on configs
loggers.py                      log levels, as configs of this broker
describe_client_quotas.py       DescribeClientQuotas
alter_client_quotas.py          AlterClientQuotas
get_telemetry_subscriptions.py  GetTelemetrySubscriptions
push_telemetry.py               PushTelemetry
"""

"""Subscriptions to metrics of clients (KIP-714): lists, describes and changes them over the wire.

confluent-kafka does not know this type of config resource.
"""

from collections.abc import Iterable, Mapping

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.topic_admin import Config
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.wire.cluster_wire import NOT_YET, Wire, settled

CLIENT_METRICS = 16
SET, DELETE = 0, 1
DEFAULT_SOURCE = 5


class ClientMetricsSubscriptions:
    """The subscriptions of a cluster."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def names(self) -> list[str]:
        """Return the names of all subscriptions."""
        request = ListConfigResourcesRequest(resource_types=[CLIENT_METRICS])
        answer = self._wire.ask_any(request, ListConfigResourcesResponse)
        _check(answer.error_code, None)
        return sorted(each.resource_name for each in answer.config_resources)

    def configs(self, name: str) -> list[Config]:
        """Return the configs of a subscription; without any it has their defaults."""
        asked = DescribeConfigsResource(resource_type=CLIENT_METRICS, resource_name=name)
        request = DescribeConfigsRequest(resources=[asked])
        (result,) = self._wire.ask_any(request, DescribeConfigsResponse).results
        _check(result.error_code, result.error_message)
        return [
            Config(
                name=each.name,
                value=each.value,
                source="default" if each.config_source == DEFAULT_SOURCE else "subscription",
                read_only=False,
                sensitive=False,
            )
            for each in result.configs
        ]

    def change(self, name: str, values: Mapping[str, str], unset: Iterable[str]) -> None:
        """Set some configs and reset others; a subscription without configs is gone."""
        changes = [
            *(AlterableConfig(name=key, config_operation=SET, value=values[key]) for key in values),
            *(AlterableConfig(name=key, config_operation=DELETE, value=None) for key in unset),
        ]
        resource = AlterConfigsResource(
            resource_type=CLIENT_METRICS, resource_name=name, configs=changes
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])

        def ask() -> tuple[int, None]:
            (result,) = self._wire.ask_any(request, IncrementalAlterConfigsResponse).responses
            if result.error_code not in NOT_YET:
                _check(result.error_code, result.error_message)
            return result.error_code, None

        settled(ask, f"Subscription {name} was not changed")


def _check(code: int, message: str | None) -> None:
    if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        raise AdminError(
            "The brokers refused: this needs DESCRIBE_CONFIGS or ALTER_CONFIGS on the cluster; "
            "`barnabas acl` grants it"
        )
    if code != ErrorCode.NONE:
        raise AdminError(message or f"The brokers answered {ErrorCode(code).name}")

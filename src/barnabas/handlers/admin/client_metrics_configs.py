"""DescribeConfigs of subscriptions to clients' metrics (resource type 16, KIP-714).

As in Kafka, a subscription that does not exist has its defaults.
"""

from collections.abc import Callable, Iterator

from barnabas.metadata.client_metrics_config import DEFINITIONS
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)

DEFAULT_SOURCE = 5
CLIENT_METRICS_SOURCE = 7


def describe(
    node: Node, name: str, is_wanted: Callable[[str], bool]
) -> Iterator[DescribeConfigsResourceResult]:
    """Return the configs of a subscription."""
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "name the subscription to metrics of clients")
    configs = node.image.client_metrics.get(name, {})
    for known in filter(lambda each: is_wanted(each.name), DEFINITIONS.values()):
        default = _synonym(known.name, known.default, DEFAULT_SOURCE)
        own = configs.get(known.name)
        synonyms = [] if own is None else [_synonym(known.name, own, CLIENT_METRICS_SOURCE)]
        synonyms.append(default)
        yield DescribeConfigsResourceResult(
            name=known.name,
            value=synonyms[0].value,
            config_source=synonyms[0].source,
            synonyms=synonyms,
            config_type=known.type,
            documentation=known.documentation,
        )


def _synonym(name: str, value: str, source: int) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=name, value=value, source=source)

"""DescribeConfigs of groups (resource type 32, KIP-932).

As in Kafka, a group without configs has its defaults, whether it exists or not.
"""

from collections.abc import Callable, Iterator

from barnabas.metadata.config_definition import ConfigDefinition, ConfigType
from barnabas.metadata.share_group_config import DEFINITIONS, broker_default
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)

SETTINGS_SOURCE = 4
DEFAULT_SOURCE = 5
GROUP_SOURCE = 8


def describe(
    node: Node, group_id: str, is_wanted: Callable[[str], bool]
) -> Iterator[DescribeConfigsResourceResult]:
    """Return the configs of a group."""
    if not group_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "name the group")
    configs = node.image.group_configs.get(group_id, {})
    for known in filter(lambda each: is_wanted(each.name), DEFINITIONS.values()):
        own = configs.get(known.name)
        synonyms = [] if own is None else [_synonym(known.name, _shown(known, own), GROUP_SOURCE)]
        synonyms += _inherited(node, known)
        yield DescribeConfigsResourceResult(
            name=known.name,
            value=synonyms[0].value,
            config_source=synonyms[0].source,
            synonyms=synonyms,
            config_type=known.type,
            documentation=known.documentation,
        )


def _inherited(node: Node, known: ConfigDefinition) -> list[DescribeConfigsSynonym]:
    """Return the broker's setting, if it is another, and the default."""
    name = known.synonyms[0] if known.synonyms else known.name
    value = broker_default(known.name, node.settings.share)
    default = _synonym(name, known.default, DEFAULT_SOURCE)
    if value == known.default:
        return [default]
    return [_synonym(name, value, SETTINGS_SOURCE), default]


def _shown(known: ConfigDefinition, value: str) -> str:
    """Return a value as Kafka writes it: without spaces, and booleans in lower case."""
    plain = value.strip()
    return plain.lower() if known.type is ConfigType.BOOLEAN else plain


def _synonym(name: str, value: str, source: int) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=name, value=value, source=source)

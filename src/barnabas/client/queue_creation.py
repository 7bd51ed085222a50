"""Create a queue: its topic, and a share group that begins with the first message."""

from collections.abc import Mapping

from barnabas.client.errors import TopicExistsError
from barnabas.client.link_failures import converted
from barnabas.logs import get
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.wire.cluster_wire import Wire, require, settled
from barnabas.wire.share_group_requests import (
    EARLIEST,
    alter_start_offsets,
    log_offsets,
    set_group_configs,
)
from barnabas.wire.wire_failures import RefusedError

RESET = "share.auto.offset.reset"
NO_GROUP_CONFIGS = {ErrorCode.INVALID_REQUEST, ErrorCode.UNSUPPORTED_VERSION}
BROKER_DEFAULT = -1

log = get("barnabas.client")


def create_queue(
    properties: Mapping[str, object],
    topic: str,
    group: str,
    *,
    partitions: int | None = None,
    replication_factor: int | None = None,
    topic_configs: Mapping[str, str] | None = None,
    group_configs: Mapping[str, str] | None = None,
    exist_ok: bool = False,
) -> bool:
    """Create what is missing; return whether the topic is new."""
    wanted = CreatableTopic(
        name=topic,
        num_partitions=partitions or BROKER_DEFAULT,
        replication_factor=replication_factor or BROKER_DEFAULT,
        configs=[
            CreatableTopicConfig(name=name, value=value)
            for name, value in (topic_configs or {}).items()
        ],
    )
    with converted(), Wire(properties) as wire:
        is_new = _create_topic(wire, wanted, exist_ok=exist_ok)
        _begin_at_first(wire, topic, group, {RESET: "earliest", **(group_configs or {})})
    return is_new


def _create_topic(wire: Wire, wanted: CreatableTopic, *, exist_ok: bool) -> bool:
    request = CreateTopicsRequest(topics=[wanted])

    def asked() -> tuple[int, tuple[int, str | None]]:
        (answer,) = wire.ask_any(request, CreateTopicsResponse).topics
        code = answer.error_code
        return (code if code == ErrorCode.NOT_CONTROLLER else 0), (code, answer.error_message)

    code, message = settled(asked, f'Topic "{wanted.name}"')
    if code == ErrorCode.TOPIC_ALREADY_EXISTS:
        if exist_ok:
            return False
        raise TopicExistsError(
            f'topic "{wanted.name}" exists already; choose another name, or pass exist_ok=True',
            code,
        )
    require(code, f'Topic "{wanted.name}" ({message or "not created"})')
    return True


def _begin_at_first(wire: Wire, topic: str, group: str, configs: Mapping[str, str]) -> None:
    """Let the group begin with the first message: by default it would skip what is there."""
    try:
        set_group_configs(wire, group, configs)
    except RefusedError as error:
        if error.code not in NO_GROUP_CONFIGS or len(configs) > 1:
            raise
    else:
        return
    # A broker without configs of groups: the start offsets do the same for a group that is new.
    firsts = settled(lambda: _firsts(wire, topic), f'Topic "{topic}"')
    try:
        alter_start_offsets(wire, group, {(topic, number): at for number, at in firsts.items()})
    except RefusedError as error:
        if error.code != ErrorCode.NON_EMPTY_GROUP:  # its members have begun already
            raise


def _firsts(wire: Wire, topic: str) -> tuple[int, dict[int, int]]:
    """Return the first offsets, or a temporary code while the new topic gets its leaders."""
    try:
        return 0, log_offsets(wire, topic, EARLIEST)
    except RefusedError as error:
        waiting = {
            ErrorCode.LEADER_NOT_AVAILABLE,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        return (ErrorCode.NOT_CONTROLLER if error.code in waiting else error.code), {}

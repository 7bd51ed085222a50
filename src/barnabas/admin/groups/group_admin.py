"""Query and change consumer groups; return plain values instead of confluent-kafka's futures."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import OffsetSpec

from barnabas.admin.admin_errors import AdminError, kafka_sentence
from barnabas.admin.connecting import metadata, open_admin
from barnabas.admin.scopes import Place

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka.admin import ConsumerGroupDescription, MemberDescription

T = TypeVar("T")

REQUEST_TIMEOUT_S = 30.0

STATES = {
    "Stable": ConsumerGroupState.STABLE,
    "Empty": ConsumerGroupState.EMPTY,
    "PreparingRebalance": ConsumerGroupState.PREPARING_REBALANCING,
    "CompletingRebalance": ConsumerGroupState.COMPLETING_REBALANCING,
    "Dead": ConsumerGroupState.DEAD,
}
TYPES = {"Classic": ConsumerGroupType.CLASSIC, "Consumer": ConsumerGroupType.CONSUMER}
STATE_WORDS = {state: word for word, state in STATES.items()}
TYPE_WORDS = {kind: word for word, kind in TYPES.items()}

ABSENT = {KafkaError.GROUP_ID_NOT_FOUND}
REMEDIES = {
    KafkaError.NON_EMPTY_GROUP: "it has members; stop them first, `barnabas group describe {}` "
    "shows which",
    KafkaError.UNKNOWN_MEMBER_ID: "it has members; stop them first, `barnabas group describe {}` "
    "shows which",
    KafkaError.GROUP_ID_NOT_FOUND: "the group does not exist; `barnabas group list` "
    "lists all groups",
    KafkaError.GROUP_SUBSCRIBED_TO_TOPIC: "its members subscribe to that topic; stop them first, "
    "`barnabas group describe {}` shows which",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A group from ListGroups; brokers before Kafka 3.8 return no type."""

    group: str
    type: str | None
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member and its assignment."""

    member_id: str
    client_id: str
    instance_id: str | None
    host: str
    partitions: list[Place]

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        places = [{"topic": topic, "partition": number} for topic, number in self.partitions]
        return asdict(self) | {"partitions": places}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group with its members and committed offsets."""

    name: str
    type: str | None
    state: str
    assignor: str
    coordinator: int | None
    members: list[Member]
    committed: dict[Place, int]

    @property
    def exists(self) -> bool:
        """Whether the group has members or committed offsets."""
        return self.state != "Dead" or bool(self.members or self.committed)

    @property
    def owners(self) -> dict[Place, Member]:
        """The member that each partition is assigned to."""
        return {place: member for member in self.members for place in member.partitions}


class Ends(NamedTuple):
    """The first and the next offset of a partition."""

    earliest: int
    end: int


class Groups:
    """The groups of a cluster."""

    def __init__(self, bootstrap: str, properties: list[str] | None) -> None:
        self._bootstrap = bootstrap
        self._admin = open_admin(bootstrap, properties)

    def listings(
        self, states: Iterable[str], types: Iterable[str], on_warning: Callable[[str], None]
    ) -> list[Listing]:
        """Return every group, or those in some states and of some types."""
        filters = {
            "states": {STATES[word] for word in states},
            "types": {TYPES[word] for word in types},
        }
        asked = self._admin.list_consumer_groups(
            request_timeout=REQUEST_TIMEOUT_S,
            **{name: wanted for name, wanted in filters.items() if wanted},
        )
        answer = _result(asked)
        for error in answer.errors or ():
            on_warning(f"A broker cannot list its groups: {kafka_sentence(error.args[0])}")
        return sorted(
            (
                Listing(
                    group=each.group_id,
                    type=TYPE_WORDS.get(each.type),
                    state=STATE_WORDS.get(each.state, "Unknown"),
                )
                for each in answer.valid or ()
            ),
            key=lambda listing: listing.group,
        )

    def describe(self, names: list[str]) -> list[Group]:
        """Return groups with members and committed offsets, in the given order."""
        asked = self._admin.describe_consumer_groups(names, request_timeout=REQUEST_TIMEOUT_S)
        return [self._group(name, asked[name]) for name in names]

    def _group(self, name: str, asked: "Future[ConsumerGroupDescription]") -> Group:
        try:
            found = asked.result()
        except KafkaException as error:
            if error.args[0].code() not in ABSENT:
                raise _failure(name, error.args[0]) from error
            return _absent(name)
        return Group(
            name=name,
            type=TYPE_WORDS.get(found.type),
            state=STATE_WORDS.get(found.state, "Unknown"),
            assignor=found.partition_assignor or "",
            coordinator=found.coordinator.id if found.coordinator else None,
            members=sorted((_member(each) for each in found.members), key=lambda m: m.member_id),
            committed=self.committed(name),
        )

    def committed(self, name: str) -> dict[Place, int]:
        """Return a group's committed offsets."""
        request = [ConsumerGroupTopicPartitions(name)]
        asked = self._admin.list_consumer_group_offsets(request, request_timeout=REQUEST_TIMEOUT_S)
        try:
            found = asked[name].result().topic_partitions or ()
        except KafkaException as error:
            if error.args[0].code() in ABSENT:
                return {}
            raise _failure(name, error.args[0]) from error
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def partition_counts(self) -> dict[str, int]:
        """Return the number of partitions of each topic."""
        topics = metadata(self._admin, self._bootstrap).topics
        return {name: len(topic.partitions) for name, topic in topics.items()}

    def ends(self, places: Iterable[Place]) -> dict[Place, Ends]:
        """Return the first and next offsets of partitions; omit those without an answer."""
        wanted = list(places)
        earliest = self._offsets(wanted, OffsetSpec.earliest())
        latest = self._offsets(wanted, OffsetSpec.latest())
        return {
            place: Ends(earliest[place], latest[place])
            for place in wanted
            if place in earliest and place in latest
        }

    def offsets_at(self, places: Iterable[Place], timestamp_ms: int) -> dict[Place, int | None]:
        """Return the first offset at or after a time; None if every record is older."""
        found = self._offsets(list(places), OffsetSpec.for_timestamp(timestamp_ms))
        return {place: offset if offset >= 0 else None for place, offset in found.items()}

    def commit(self, name: str, offsets: Mapping[Place, int]) -> None:
        """Set a group's committed offsets."""
        places = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(name, places)]
        asked = self._admin.alter_consumer_group_offsets(request, request_timeout=REQUEST_TIMEOUT_S)
        for each in _result(asked[name], name).topic_partitions:
            if each.error is not None:
                raise _failure(f"{name}, {each.topic}-{each.partition}", each.error)

    def delete(self, name: str) -> None:
        """Delete a group with its committed offsets."""
        asked = self._admin.delete_consumer_groups([name], request_timeout=REQUEST_TIMEOUT_S)
        _result(asked[name], name)

    def _offsets(self, places: list[Place], spec: OffsetSpec) -> dict[Place, int]:
        if not places:
            return {}
        wanted = {TopicPartition(*place): spec for place in places}
        answers = self._admin.list_offsets(wanted, request_timeout=REQUEST_TIMEOUT_S)
        found = {}
        for place, future in answers.items():
            try:
                found[place.topic, place.partition] = int(future.result().offset)
            except KafkaException:  # a deleted topic must not hide the others
                continue
        return found


def no_group(name: str) -> AdminError:
    """Return the error for a group that does not exist."""
    return AdminError(f"There is no group {name}; `barnabas group list` lists all groups")


def group_failure(name: str, code: int) -> AdminError:
    """Return the message for a coordinator's error, with what to do about it."""
    return _failure(name, KafkaError(code))


def _failure(name: str, error: KafkaError) -> AdminError:
    remedy = REMEDIES.get(error.code())
    sentence = kafka_sentence(error) if remedy is None else remedy.format(name)
    return AdminError(f"Group {name}: {sentence}")


def _absent(name: str) -> Group:
    return Group(
        name=name,
        type=None,
        state="Dead",
        assignor="",
        coordinator=None,
        members=[],
        committed={},
    )


def _member(found: "MemberDescription") -> Member:
    places = sorted((each.topic, each.partition) for each in found.assignment.topic_partitions)
    return Member(
        member_id=found.member_id,
        client_id=found.client_id,
        instance_id=found.group_instance_id,
        host=found.host,
        partitions=places,
    )


def _result(future: "Future[T]", name: str | None = None) -> T:
    try:
        return future.result()
    except KafkaException as error:
        if name is not None:
            raise _failure(name, error.args[0]) from error
        raise AdminError(kafka_sentence(error.args[0])) from error

"""Query and change share groups, which librdkafka's admin client does not know."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from barnabas.admin.connecting import settings
from barnabas.admin.groups.group_admin import Group, Listing, Member, group_failure
from barnabas.admin.scopes import Place
from barnabas.model.errors import ErrorCode
from barnabas.wire import share_group_requests as requests
from barnabas.wire.cluster_wire import Kind, Wire
from barnabas.wire.share_group_requests import Progress
from barnabas.wire.wire_failures import LinkError, RefusedError, UnservedError

CLIENT_ID = "barnabas-cli"
SHARE = "Share"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMember:
    """One member of a share group, and the partitions that it reads."""

    member_id: str
    client_id: str
    host: str
    partitions: list[Place]

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        places = [{"topic": topic, "partition": number} for topic, number in self.partitions]
        return asdict(self) | {"partitions": places}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroup:
    """A share group with its members and its progress."""

    name: str
    state: str
    assignor: str
    coordinator: int
    members: list[ShareGroupMember]
    progress: dict[Place, Progress]

    @property
    def lag(self) -> int:
        """How many records are not done, over all partitions whose lag is known."""
        return sum(each.lag for each in self.progress.values() if each.lag is not None)

    def as_group(self) -> Group:
        """Return it as a group whose committed offsets are the start offsets, for a reset."""
        return Group(
            name=self.name,
            type=SHARE,
            state=self.state,
            assignor=self.assignor,
            coordinator=self.coordinator,
            members=[
                Member(
                    member_id=each.member_id,
                    client_id=each.client_id,
                    instance_id=None,
                    host=each.host,
                    partitions=each.partitions,
                )
                for each in self.members
            ],
            committed={
                place: each.start for place, each in self.progress.items() if each.start is not None
            },
        )

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        return {
            "group": self.name,
            "type": SHARE,
            "state": self.state,
            "assignor": self.assignor or None,
            "coordinator": self.coordinator,
            "members": [each.as_json() for each in self.members],
            "partitions": [
                {"topic": topic, "partition": number, "start": each.start, "lag": each.lag}
                for (topic, number), each in self.progress.items()
            ],
            "lag": self.lag,
        }


class ShareGroupAdmin:
    """The share groups of a cluster."""

    def __init__(self, bootstrap: str, properties: list[str] | None) -> None:
        self._properties = settings(bootstrap, properties)

    def listings(self, on_warning: Callable[[str], None]) -> list[Listing]:
        """Return every share group; none if the brokers are too old to have some."""
        try:
            with Wire(self._properties, CLIENT_ID) as wire:
                found = requests.listings(wire)
        except UnservedError:
            return []
        except LinkError as error:
            on_warning(f"Share groups cannot be listed: {error}")
            return []
        return [Listing(group=name, type=SHARE, state=state) for name, state in found.items()]

    def find(self, name: str) -> ShareGroup | None:
        """Return a share group; None if there is none of that name."""
        with self._wire(name) as wire:
            try:
                found = requests.describe(wire, name)
                progress = requests.start_offsets(wire, name)
            except UnservedError:
                return None
            except RefusedError as error:
                if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
                    return None
                raise
            coordinator = wire.coordinator(Kind.GROUP, name).id
        members = [
            ShareGroupMember(
                member_id=each.member_id,
                client_id=each.client_id,
                host=each.client_host,
                partitions=sorted(
                    (topic.topic_name, number)
                    for topic in each.assignment.topic_partitions
                    for number in topic.partitions
                ),
            )
            for each in found.members
        ]
        return ShareGroup(
            name=name,
            state=found.group_state,
            assignor=found.assignor_name,
            coordinator=coordinator,
            members=sorted(members, key=lambda each: each.member_id),
            progress=dict(sorted(progress.items())),
        )

    def move(self, name: str, offsets: Mapping[Place, int]) -> None:
        """Set where a group without members goes on; what is before counts as done."""
        with self._wire(name) as wire:
            requests.alter_start_offsets(wire, name, offsets)

    def forget(self, name: str, topics: list[str]) -> None:
        """Delete the progress of a group without members in some topics."""
        with self._wire(name) as wire:
            requests.delete_offsets(wire, name, topics)

    def delete(self, name: str) -> None:
        """Delete a group without members."""
        with self._wire(name) as wire:
            requests.delete_group(wire, name)

    @contextmanager
    def _wire(self, name: str) -> Iterator[Wire]:
        try:
            with Wire(self._properties, CLIENT_ID) as wire:
                yield wire
        except RefusedError as error:
            raise group_failure(name, error.code) from error

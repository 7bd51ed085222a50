"""Clients of a classic group act in any order; the log is slow, refuses writes, and is lost.

The invariants: a generation has one leader, and every member of it gets one assignment, made by
that leader for it. No client gets an older generation after a newer one. A timer tracks every
waiting request, so that every client gets a response in the end, and a group becomes empty when all
members have left.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Literal, NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from barnabas.groups.classic.classic_group import ClassicGroup, State
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.settings import GroupSettings
from barnabas.protocol.coordinator_codec import decode_group_record
from barnabas.protocol.coordinator_records.group_metadata import GroupMetadataValue
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from tests.support.examples import examples
from tests.support.talk.classic_talk import GROUP, Asked, ClassicTalk, TalkingMember

INSTANCES = ("static-x", "static-y")
PROTOCOLS = (("range",), ("range", "robin"), ("robin", "range"))
UUID_LENGTH = 36
LONG_MS = 400_000
CROWD = 6

NEVER = 10**15


class Assignment(NamedTuple):
    """What a leader assigns to a member, in a form that shows the leader, the member and the
    generation.
    """

    life: int
    generation: int
    leader: str
    member: str
    number: int

    def encode(self) -> bytes:
        return "|".join(map(str, self)).encode()

    @classmethod
    def decode(cls, content: bytes) -> "Assignment":
        life, generation, leader, member, number = content.decode().split("|")
        return cls(int(life), int(generation), leader, member, int(number))


def identity(member_id: str) -> str:
    """Return the identity of a client under any member id: static members change theirs."""
    prefix = member_id[: -UUID_LENGTH - 1]
    return prefix if prefix in INSTANCES else member_id


class Client:
    """A member, the other members of its generation if it knows them, and its next step."""

    def __init__(self, member: TalkingMember) -> None:
        self.member = member
        self.company: list[str] = []
        self.next: Literal["join", "sync", "heartbeat", "nothing"] = "join"
        self.waits = 0

    def hear(self, code: ErrorCode) -> None:
        """Handle a response as a client does that follows the protocol."""
        self.waits = max(0, self.waits - 1)
        if code in {ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_MAX_SIZE_REACHED}:
            self.next = "nothing"
        elif code is not ErrorCode.NONE:
            self.next = "join"
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member.member_id = ""


class ClassicGroupMachine(RuleBasedStateMachine):
    """A coordinator and its clients."""

    clients = Bundle("clients")

    @initialize(max_size=st.sampled_from([3, 100]), delay_ms=st.sampled_from([0, 100]))
    def begin(self, max_size: int, delay_ms: int) -> None:
        # A group that is empty and has no offsets is deleted at the next check, and would start
        # again with generation 1.
        settings = GroupSettings(
            max_size=max_size, initial_rebalance_delay_ms=delay_ms, offsets_retention_check_ms=NEVER
        )
        self.talk = ClassicTalk(settings)
        self.life = 0
        self.everybody: list[Client] = []
        self.expected: list[tuple[Asked[Any], Callable[[], None]]] = []
        self.leaders: dict[tuple[int, int], str] = {}
        self.heard: dict[str, int] = {}
        self.assigned: dict[tuple[int, int, str], bytes] = {}
        self.number = 0

    # Actions of clients

    @rule(
        target=clients,
        instance=st.sampled_from([None, None, *INSTANCES]),
        version=st.sampled_from([3, 8, 9]),
        protocols=st.sampled_from(PROTOCOLS),
        rebalance_ms=st.sampled_from([2_000, 20_000]),
    )
    def arrive(
        self, instance: str | None, version: int, protocols: tuple[str, ...], rebalance_ms: int
    ) -> Client:
        self.number += 1
        member = self.talk.member(
            f"m{self.number}",
            instance_id=instance,
            version=version,
            rebalance_ms=rebalance_ms,
            protocols=dict.fromkeys(protocols, b"first"),
        )
        client = Client(member)
        self.everybody.append(client)
        self.join(client)
        return client

    @rule(rounds=st.integers(1, 12))
    def everybody_does_what_is_next(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.everybody:
                self.do_next(client)
            self.pass_time(50)

    @rule(seed=st.integers(0, 2**32), steps=st.integers(20, 100))
    def a_storm(self, seed: int, steps: int) -> None:
        """Go through many actions at once: mostly clients that work, and sometimes a failure."""
        rng = Random(seed)
        for _ in range(steps):
            client = rng.choice(self.everybody) if self.everybody else None
            if client is None or (len(self.everybody) < CROWD and not rng.randrange(10)):
                instance = rng.choice([None, *INSTANCES])
                protocols = rng.choice(PROTOCOLS)
                self.arrive(instance, rng.choice([3, 8, 9]), protocols, rng.choice([2_000, 20_000]))
            elif rng.randrange(4):
                self.do_next(client)
            else:
                self.something_amiss(client, rng)
            self.pass_time(rng.choice([0, 1, 20, 100]))
            self.the_group_is_sound()
            self.nothing_waits_for_ever()

    def something_amiss(self, client: Client, rng: Random) -> None:
        amiss: list[Callable[[], None]] = [
            lambda: self.join(client),
            lambda: self.join_changed(client, rng.choice([b"first", b"second"])),
            lambda: self.sync(client),
            lambda: self.sync(client),
            lambda: self.leave(client),
            lambda: self.start_again(client),
            lambda: self.pass_time(rng.choice([500, 6_000, 10_000, 20_000])),
            lambda: self.hold_commits(hold=True),
            lambda: self.hold_commits(hold=True),
            lambda: self.hold_commits(hold=False),
            lambda: self.commit(1),
            lambda: self.commit(3),
            lambda: self.refuse_writes(refuse=not rng.randrange(2)),
            self.a_twin_that_starts_from_the_log_is_the_same,
        ]
        if rng.randrange(30):
            rng.choice(amiss)()
        else:
            self.crash()

    def do_next(self, client: Client) -> None:
        if client.waits or client.next == "nothing":
            return
        if client.next == "join":
            self.join(client)
        elif client.next == "sync":
            self.sync(client)
        else:
            self.heartbeat(client)

    @rule(client=clients)
    def join(self, client: Client) -> None:
        asked = client.member.join_once()
        self.expect(client, asked, lambda: self.hear_join(client, asked))

    @rule(client=clients, metadata=st.sampled_from([b"first", b"second"]))
    def join_changed(self, client: Client, metadata: bytes) -> None:
        client.member.protocols = dict.fromkeys(client.member.protocols, metadata)
        self.join(client)

    @rule(client=clients)
    def sync(self, client: Client) -> None:
        member = client.member
        me, generation = identity(member.member_id), member.generation
        given = {}
        if member.leads:
            self.number += 1
            given = {
                other: Assignment(self.life, generation, me, identity(other), self.number).encode()
                for other in client.company
            }
        asked = member.sync(given)
        self.expect(client, asked, lambda: self.hear_sync(client, me, generation, asked))

    @rule(client=clients)
    def heartbeat(self, client: Client) -> None:
        asked = client.member.send_heartbeat()
        self.expect(client, asked, lambda: client.hear(asked.code))

    @rule(client=clients)
    def leave(self, client: Client) -> None:
        client.next = "nothing"
        asked = client.member.send_leave()
        self.expect(client, asked, lambda: client.hear(ErrorCode.NONE))

    @rule(client=clients)
    def start_again(self, client: Client) -> None:
        client.member.member_id = ""
        client.next, client.waits = "join", 0

    # Events at the coordinator

    @rule(duration_ms=st.sampled_from([1, 100, 499, 500, 6_000, 10_000, 20_000, LONG_MS]))
    def pass_time(self, duration_ms: int) -> None:
        self.talk.pass_time(duration_ms)
        self.listen()

    @rule(hold=st.sampled_from([True, True, False]))
    def hold_commits(self, hold: bool) -> None:
        self.talk.runner.hold_commits = hold

    @rule(count=st.integers(1, 3))
    def commit(self, count: int) -> None:
        self.talk.runner.commit(count)
        self.listen()

    @rule(refuse=st.sampled_from([False, False, False, True]))
    def refuse_writes(self, refuse: bool) -> None:
        self.talk.runner.refusal = ApiError(ErrorCode.KAFKA_STORAGE_ERROR) if refuse else None

    @rule()
    def crash(self) -> None:
        self.talk.runner.crash()
        if self.assigned:
            assert self.talk.group.generation >= max(key[1] for key in self.assigned)
        self.life += 1
        self.heard.clear()
        self.expected.clear()
        for client in self.everybody:
            client.waits = 0

    # Invariants

    def expect(self, client: Client, asked: Asked[Any], heard: Callable[[], None]) -> None:
        client.waits += 1
        self.expected.append((asked, heard))
        self.listen()

    def listen(self) -> None:
        """Process new responses in the order in which they came."""
        while self.talk.answered:
            came = self.talk.answered.pop(0)
            for expected in self.expected:
                if expected[0] is came:
                    self.expected.remove(expected)
                    expected[1]()
                    break

    def hear_join(self, client: Client, asked: Asked[JoinGroupResponse]) -> None:
        client.hear(asked.code)
        if asked.code is ErrorCode.MEMBER_ID_REQUIRED:
            client.member.member_id = asked.answer.member_id
        if asked.code is not ErrorCode.NONE:
            return
        client.member.take(asked)
        client.next = "sync"
        answer = asked.answer
        client.company = [member.member_id for member in answer.members]
        me, leader = identity(answer.member_id), identity(answer.leader)
        generation = answer.generation_id
        assert self.leaders.setdefault((self.life, generation), leader) == leader
        assert self.heard.get(me, 0) <= generation
        self.heard[me] = generation
        if client.company:
            assert leader == me
            assert answer.member_id in client.company

    def hear_sync(
        self, client: Client, me: str, generation: int, asked: Asked[SyncGroupResponse]
    ) -> None:
        client.hear(asked.code)
        if asked.code is not ErrorCode.NONE:
            return
        client.next = "heartbeat"
        assert asked.answer.assignment == self.stored(generation, me)
        content = asked.answer.assignment
        assert self.assigned.setdefault((self.life, generation, me), content) == content
        if not content:
            # A member that the leader did not know: it led the same number before a crash.
            assert self.life
            return
        given = Assignment.decode(content)
        assert (given.generation, given.member) == (generation, me)
        assert self.leaders[given.life, given.generation] == given.leader

    def stored(self, generation: int, me: str) -> bytes | None:
        """Return the assignment that no crash can remove any more."""
        runner = self.talk.runner
        for entry in reversed(runner.log[: runner.committed]):
            for record in entry.records:
                stored = decode_group_record(record)
                assert stored is not None
                assert isinstance(stored.value, GroupMetadataValue)
                for member in stored.value.members:
                    if (stored.value.generation, identity(member.member_id)) == (generation, me):
                        return member.assignment
        return None

    @invariant()
    def the_group_is_sound(self) -> None:
        group = self.talk.runner.machine.groups.get(GROUP)
        if group is None:
            return
        assert isinstance(group, ClassicGroup)
        assert group.joining.keys() <= group.members.keys()
        assert group.syncing.keys() <= group.members.keys()
        assert not group.joining or group.state is State.PREPARING
        assert not group.syncing or group.state is State.COMPLETING
        assert (group.state is State.EMPTY) <= (not group.members)
        assert group.instances == {
            m.instance_id: m.member_id for m in group.members.values() if m.instance_id
        }
        if group.members:
            assert group.leader in group.members
            assert group.favourite_protocol() in {"range", "robin"}
        else:
            assert group.leader is None

    @invariant()
    def nothing_waits_for_ever(self) -> None:
        group = self.talk.runner.machine.groups.get(GROUP)
        if not isinstance(group, ClassicGroup):
            return
        timers = self.talk.runner.timers
        for member_id, member in group.members.items():
            waits = member_id in group.joining or member_id in group.syncing
            watched = f"session of {member_id!r} in {GROUP!r}" in timers
            assert watched or (waits and not member.is_new)
        for member_id in group.invited:
            assert f"session of {member_id!r} in {GROUP!r}" in timers
        sessions = {name for name in timers if name.startswith("session")}
        assert len(sessions) <= len(group.members) + len(group.invited)
        assert (f"join phase of {GROUP!r}" in timers) == (group.state is State.PREPARING)
        assert (f"sync phase of {GROUP!r}" in timers) == bool(group.unsynced)

    @rule()
    def a_twin_that_starts_from_the_log_is_the_same(self) -> None:
        group = self.talk.runner.machine.groups.get(GROUP)
        if not isinstance(group, ClassicGroup) or group.state is not State.STABLE:
            return
        twin = ClassicTalk()
        twin.runner.log[:] = self.talk.runner.log
        twin.runner.committed = len(twin.runner.log)
        twin.runner.crash()
        assert facts(twin.group) == facts(group)

    def teardown(self) -> None:
        if not hasattr(self, "talk"):
            return
        runner = self.talk.runner
        runner.hold_commits, runner.refusal = False, None
        runner.commit()
        self.talk.pass_time(10 * LONG_MS)
        self.listen()
        assert self.expected == []
        assert self.talk.timers == set()
        if GROUP in runner.machine.groups:
            assert self.talk.group.state is State.EMPTY


def facts(group: ClassicGroup) -> tuple[object, ...]:
    members = {m.member_id: (m.instance_id, m.assignment) for m in group.members.values()}
    return (group.state, group.generation, group.protocol, group.leader, members)


TestClassicGroups = ClassicGroupMachine.TestCase
TestClassicGroups.settings = settings(
    max_examples=examples(500),
    stateful_step_count=20,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

"""Members join, leave, stall and lose responses: no partition ever has two owners.

Ownership is what the members act on, not what the coordinator stores. Requests of one member arrive
in the order they were sent, some of them twice, some never, and some responses never. A member that
crashes stops reading at once. No coordinator can stop a member that stalls for longer than its
session and then reads on, so the test leaves that out.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from barnabas.groups.consumer import consumer_protocol, reconciliation
from barnabas.groups.consumer.assignors.spec import Slot
from barnabas.groups.consumer.consumer_member import Standing
from barnabas.groups.consumer.reconciliation import Owned, Target
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.support.examples import examples
from tests.support.talk.consumer_talk import ConsumerTalk, TalkingMember

TOPICS = ["one", "two", "three"]
HEARTBEAT_MS = 5000
PATIENCE = 6
"""By then even the slowest member has revoked its partitions; the limit is 60 s."""

FENCED = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID}
SUBSCRIPTIONS = st.sampled_from([["one"], ["one", "two"], TOPICS])


class Groups(RuleBasedStateMachine):
    """A coordinator, and members that follow the protocol."""

    members = Bundle("members")
    absent = Bundle("absent")

    def __init__(self) -> None:
        super().__init__()
        self.talk = ConsumerTalk({"one": 3, "two": 2})
        self.present: list[TalkingMember] = []
        self.stalled: Counter[str] = Counter()
        self.count = 0

    @rule(target=members, names=SUBSCRIPTIONS, static=st.booleans())
    def join(self, names: list[str], static: bool) -> TalkingMember:
        self.count += 1
        member = self.talk.member(f"m{self.count}", f"i{self.count}" if static else None)
        self.present.append(member)
        member.join(names)
        return member

    @rule(member=members, fate=st.sampled_from(["heard", "lost", "no answer", "twice"]))
    def heartbeat(self, member: TalkingMember, fate: str) -> None:
        if member not in self.present:
            return
        if fate == "lost":
            member.lose_response()
        elif fate == "heard":
            self.report(member)
        else:
            request = member.request(full=True)
            for _ in range(2 if fate == "twice" else 1):
                self.deliver(request)
            member.lose_response()

    @rule(member=members)
    def follow_assignment(self, member: TalkingMember) -> None:
        if member in self.present:
            member.follow_assignment()
            self.stalled[member.member_id] = 0

    @rule(member=members, names=SUBSCRIPTIONS)
    def subscribe(self, member: TalkingMember, names: list[str]) -> None:
        if member in self.present:
            member.subscription["subscribed_topic_names"] = names
            self.report(member, full=True)

    @rule(member=consumes(members))
    def leave(self, member: TalkingMember) -> None:
        if member in self.present:
            self.present.remove(member)
            member.drop_all()
            if member.member_id in self.talk.group.members:
                member.leave()

    @rule(target=absent, member=consumes(members))
    def leave_for_a_while(self, member: TalkingMember) -> object:
        if member not in self.present or member.instance_id is None:
            return multiple()
        if member.member_id not in self.talk.group.members:
            return multiple()
        self.present.remove(member)
        member.leave(-2)
        return member

    @rule(target=members, gone=consumes(absent))
    def come_back(self, gone: TalkingMember) -> TalkingMember:
        self.count += 1
        member = self.talk.member(f"m{self.count}", gone.instance_id)
        self.present.append(member)
        member.subscription = gone.subscription
        member.join()
        return member

    @rule(member=consumes(members))
    def vanish(self, member: TalkingMember) -> None:
        if member in self.present:
            self.present.remove(member)

    @rule()
    def pass_time(self) -> None:
        self.talk.pass_time(HEARTBEAT_MS)
        for member in list(self.present):
            self.stalled[member.member_id] += member.owned != member.assigned
            if self.stalled[member.member_id] >= PATIENCE:
                self.follow_assignment(member)
            self.report(member)

    @rule(name=st.sampled_from(TOPICS))
    def grow(self, name: str) -> None:
        if name in self.talk.image.topics:
            self.talk.grow_topic(name)
        else:
            self.talk.create_topic(name, 2)

    @precondition(lambda self: "two" in self.talk.image.topics)
    @rule()
    def delete(self) -> None:
        self.talk.delete_topic("two")

    @rule()
    def restart(self) -> None:
        self.talk.restart()

    @invariant()
    def no_partition_has_two_readers(self) -> None:
        readers = Counter(slot for member in self.present for slot in member.owned)
        assert max(readers.values(), default=0) <= 1

    @invariant()
    def what_is_stored_is_all_there_is(self) -> None:
        if not self.talk.log or not self.talk.machine.groups:
            return
        group = self.talk.group
        held = [slot for m in group.members.values() for slot in m.standing.assigned]
        held += [slot for m in group.members.values() for slot in m.standing.pending_revocation]
        assert len(held) == len(set(held))

    def teardown(self) -> None:
        """In the end the group is stable, and every partition has an owner."""
        for _ in range(40):
            self.talk.pass_time(HEARTBEAT_MS)
            for member in self.present:
                member.follow_assignment()
                self.report(member)
        if not self.present:
            return
        assert self.talk.group.state == "Stable"
        assert sorted(slot for m in self.present for slot in m.owned) == sorted(self.wanted())

    def wanted(self) -> Iterator[Slot]:
        names = {
            name
            for member in self.present
            for name in member.subscription["subscribed_topic_names"]  # type: ignore[attr-defined]
        }
        yield from self.talk.slots(*(names & self.talk.image.topics.keys()))

    def report(self, member: TalkingMember, *, full: bool = False) -> None:
        """Send a heartbeat; a fenced member drops everything and rejoins."""
        response = self.deliver(member.request(full=full))
        if response is not None:
            member.take_response(response)
        else:
            member.drop_all()
            member.join()

    def deliver(
        self, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse | None:
        """Return the response, or None if the member is fenced."""
        try:
            return self.talk.heartbeat(request)
        except ApiError as error:
            if error.code not in FENCED:
                raise
            return None


LIMITS = settings(
    max_examples=examples(60),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestGroups = Groups.TestCase
TestGroups.settings = LIMITS


def every_partition_is_free(
    standing: Standing, target: Target, owned: Owned, is_free: Callable[[Slot], bool]
) -> Standing:
    return reconciliation.reconcile(standing, target, owned, lambda slot: True)


def revocation_is_not_awaited(
    standing: Standing, target: Target, owned: Owned, is_free: Callable[[Slot], bool]
) -> Standing:
    return reconciliation.reconcile(standing, target, set(), is_free)


@pytest.mark.parametrize("mutant", [every_partition_is_free, revocation_is_not_awaited])
def test_the_checks_catch_mutants(
    mutant: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_protocol, "reconcile", mutant)
    enough = settings(
        LIMITS, max_examples=200, database=None, derandomize=True, phases=[Phase.generate]
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Groups, settings=enough)

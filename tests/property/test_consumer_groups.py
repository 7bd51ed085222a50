"""Members that come, go, stall and lose track: no partition ever has two readers.

Who reads what is what the members believe, not what the coordinator does. Requests of one member
arrive in the order they were sent, some of them twice, some never, and some responses never. A
member that vanishes stops reading when it does: one that stalls for longer than its session, and
then reads on, no coordinator can hold back.
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

from barnabas.groups.consumer import protocol, reconciliation
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
"""After so many heartbeats even the slowest has given up what it must; 60 s are allowed."""

FENCED = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID}
SUBSCRIPTIONS = st.sampled_from([["one"], ["one", "two"], TOPICS])


class Groups(RuleBasedStateMachine):
    """A coordinator, and members that behave as well as members do."""

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
    def beat(self, member: TalkingMember, fate: str) -> None:
        if member not in self.present:
            return
        if fate == "lost":
            member.lose_track()
        elif fate == "heard":
            self.report(member)
        else:
            request = member.request(full=True)
            for _ in range(2 if fate == "twice" else 1):
                self.deliver(request)
            member.lose_track()

    @rule(member=members)
    def obey(self, member: TalkingMember) -> None:
        if member in self.present:
            member.obey()
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
            self.stalled[member.member_id] += member.owned != member.told
            if self.stalled[member.member_id] >= PATIENCE:
                self.obey(member)
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
        """Once all is quiet, the group is stable and everything is read."""
        for _ in range(40):
            self.talk.pass_time(HEARTBEAT_MS)
            for member in self.present:
                member.obey()
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
        """Report; who is fenced drops everything and joins again."""
        response = self.deliver(member.request(full=full))
        if response is not None:
            member.hear(response)
        else:
            member.drop_all()
            member.join()

    def deliver(
        self, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse | None:
        """Return the response, or None for who is fenced."""
        try:
            return self.talk.beat(request)
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


def everything_is_free(
    standing: Standing, target: Target, owned: Owned, is_free: Callable[[Slot], bool]
) -> Standing:
    return reconciliation.reconcile(standing, target, owned, lambda slot: True)


def nobody_is_waited_for(
    standing: Standing, target: Target, owned: Owned, is_free: Callable[[Slot], bool]
) -> Standing:
    return reconciliation.reconcile(standing, target, set(), is_free)


@pytest.mark.parametrize("mutant", [everything_is_free, nobody_is_waited_for])
def test_the_checks_bite(mutant: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "reconcile", mutant)
    enough = settings(
        LIMITS, max_examples=60, database=None, derandomize=True, phases=[Phase.generate]
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Groups, settings=enough)

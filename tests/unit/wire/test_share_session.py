"""Tests the session of a share consumer with one leader: epochs, partitions, acknowledgements."""

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from barnabas.protocol.messages.share_fetch import ShareFetchRequest
from barnabas.wire.share_session import ShareSession
from barnabas.wire.share_values import Ack, AckKind, FetchLimits, Outcome, Place, Verdict

TOPIC = b"t" * 16
FIRST, SECOND = Place(TOPIC, 0), Place(TOPIC, 1)
LIMITS = FetchLimits(records=10)
ACCEPT, RELEASE, RENEW = AckKind.ACCEPT, AckKind.RELEASE, AckKind.RENEW


class Told:
    """Collects the outcomes of acknowledgements, by offset."""

    def __init__(self, session: ShareSession) -> None:
        self.session = session
        self.outcomes: dict[int, list[Verdict]] = {}

    def say(self, *offsets: int, kind: AckKind = ACCEPT, place: Place = FIRST) -> None:
        for offset in offsets:
            told = self.outcomes.setdefault(offset, [])
            self.session.add(Ack(place, offset, kind, told.append))

    def words(self) -> dict[int, list[str]]:
        return {
            offset: [each.outcome.value for each in them] for offset, them in self.outcomes.items()
        }


def opened(*places: Place) -> ShareSession:
    session = ShareSession("jobs", "ann")
    session.wanted = set(places or (FIRST,))
    session.fetch(LIMITS)
    session.answered({})
    return session


def partitions(request: ShareFetchRequest) -> list[int]:
    return [each.partition_index for topic in request.topics for each in topic.partitions]


def forgotten(request: ShareFetchRequest) -> list[int]:
    return [number for topic in request.forgotten_topics_data for number in topic.partitions]


def acks(
    request: ShareFetchRequest | ShareAcknowledgeRequest,
) -> list[tuple[int, int, list[int]]]:
    return [
        (each.first_offset, each.last_offset, each.acknowledge_types)
        for topic in request.topics
        for partition in topic.partitions
        for each in partition.acknowledgement_batches
    ]


def test_a_session_names_partitions_only_when_they_change() -> None:
    session = ShareSession("jobs", "ann")
    session.wanted = {FIRST, SECOND}
    assert not session.is_open
    first = session.fetch(LIMITS)
    assert (first.share_session_epoch, partitions(first)) == (0, [0, 1])
    session.answered({})
    second = session.fetch(LIMITS)
    assert (second.share_session_epoch, partitions(second), forgotten(second)) == (1, [], [])
    session.answered({})
    session.wanted = {SECOND}
    third = session.fetch(LIMITS)
    assert (third.share_session_epoch, partitions(third), forgotten(third)) == (2, [], [0])
    session.answered({})
    session.wanted = {FIRST, SECOND}
    assert partitions(session.fetch(LIMITS)) == [0]


def test_the_first_request_carries_no_acknowledgements() -> None:
    session = ShareSession("jobs", "ann")
    session.wanted = {FIRST}
    told = Told(session)
    told.say(3)
    assert acks(session.fetch(LIMITS)) == []
    session.answered({})
    assert acks(session.fetch(LIMITS)) == [(3, 3, [ACCEPT])]


def test_neighbouring_acknowledgements_go_out_as_one_run() -> None:
    session = opened()
    told = Told(session)
    told.say(5, 3, 4, 9)
    told.say(6, kind=RELEASE)
    assert acks(session.fetch(LIMITS)) == [
        (3, 5, [ACCEPT]),
        (6, 6, [RELEASE]),
        (9, 9, [ACCEPT]),
    ]
    session.answered({FIRST: 0})
    assert set(map(tuple, told.words().values())) == {("stored",)}
    assert not session.has_acks


def test_acknowledgements_of_a_partition_that_left_go_out_alone() -> None:
    session = opened(FIRST, SECOND)
    told = Told(session)
    told.say(1)
    told.say(2, place=SECOND)
    session.wanted = {SECOND}
    assert session.needs_acknowledge
    assert acks(session.fetch(LIMITS)) == [(2, 2, [ACCEPT])]
    session.answered({})
    assert acks(session.acknowledge()) == [(1, 1, [ACCEPT])]


def test_a_renewal_needs_a_request_of_its_own() -> None:
    session = opened()
    told = Told(session)
    told.say(1, kind=RENEW)
    assert session.needs_acknowledge
    assert acks(session.fetch(LIMITS)) == []
    session.answered({})
    request = session.acknowledge()
    assert request.is_renew_ack
    assert acks(request) == [(1, 1, [RENEW])]


def test_an_answer_makes_a_waiting_renewal_pointless() -> None:
    session = opened()
    told = Told(session)
    told.say(1, kind=RENEW)
    told.say(1)
    assert acks(session.fetch(LIMITS)) == [(1, 1, [ACCEPT])]
    session.answered({})
    assert told.words() == {1: ["stored", "stored"]}


def test_of_a_refused_partition_only_the_lost_records_are_lost() -> None:
    session = opened()
    told = Told(session)
    told.say(*range(8))
    requests = 0
    while session.has_acks:
        sent = acks(session.acknowledge())
        requests += 1
        is_lost = any(first <= 5 <= last for first, last, _ in sent)
        session.answered({FIRST: ErrorCode.INVALID_RECORD_STATE if is_lost else 0})
    assert {offset for offset, words in told.words().items() if words == ["lost"]} == {5}
    assert sum(words == ["stored"] for words in told.words().values()) == 7
    assert requests == 7


def test_what_could_not_be_stored_now_is_sent_again() -> None:
    session = opened()
    told = Told(session)
    told.say(1)
    session.acknowledge()
    session.answered({FIRST: ErrorCode.COORDINATOR_NOT_AVAILABLE})
    assert told.words() == {1: []}
    assert acks(session.acknowledge()) == [(1, 1, [ACCEPT])]
    session.answered({FIRST: 0})
    assert told.words() == {1: ["stored"]}


def test_another_leader_means_that_the_lock_is_lost() -> None:
    session = opened()
    told = Told(session)
    told.say(1)
    session.acknowledge()
    session.answered({FIRST: ErrorCode.NOT_LEADER_OR_FOLLOWER})
    assert told.outcomes[1] == [Verdict(Outcome.LOST, ErrorCode.NOT_LEADER_OR_FOLLOWER)]


def test_a_broken_connection_leaves_what_was_sent_unknown() -> None:
    session = opened()
    told = Told(session)
    told.say(1)
    session.acknowledge()
    told.say(2)
    session.broke()
    told.say(3)
    assert told.words() == {1: ["unknown"], 2: ["lost"], 3: ["lost"]}
    assert not session.is_open


def test_a_refused_session_stores_nothing() -> None:
    session = opened()
    told = Told(session)
    told.say(1)
    session.fetch(LIMITS)
    told.say(2)
    session.refused(ErrorCode.SHARE_SESSION_NOT_FOUND)
    assert told.words() == {1: ["lost"], 2: ["lost"]}


def test_the_last_request_has_the_final_epoch() -> None:
    session = opened()
    Told(session).say(1)
    request = session.acknowledge(is_final=True)
    assert (request.share_session_epoch, acks(request)) == (-1, [(1, 1, [ACCEPT])])


def test_an_unknown_code_is_an_error() -> None:
    session = opened()
    told = Told(session)
    told.say(1)
    session.acknowledge()
    session.answered({FIRST: 9999})
    assert told.outcomes[1] == [Verdict(Outcome.LOST, ErrorCode.UNKNOWN_SERVER_ERROR)]

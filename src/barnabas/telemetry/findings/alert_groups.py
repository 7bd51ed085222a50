"""Groups alerts: one message for all cards of a node and namespace that have the same finding.

    step(groups, alerts, now, thresholds) -> groups', messages

`alerts` has the alerts of single cards. Here cards of one host, namespace and finding become a
group, and the group is announced:

    a first card is raised             raised      lists the cards that were raised with it
    more cards are raised              raised      together, every group_every_s at most
    a card's severity grows            raised      at once
    a card's alert is repeated         still       once for all of them, with the present cards
    some cards clear                   (nothing)   the next message no longer lists them
    the last card clears               cleared     lists the cards of the last message

If all cards flap, the state is `flapping` instead of `raised`. The id, the GPU and the first time
of a message are those of the card that was raised first, from the first message to the last; a
group of one card is that card's alert unchanged. Alerts without a host, and those for a whole host,
are passed on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.telemetry.findings.alerts import Alert, State, is_event
from barnabas.telemetry.findings.finding import us
from barnabas.telemetry.findings.fleet import HOST_PREFIX
from barnabas.telemetry.findings.severity import Severity
from barnabas.telemetry.findings.thresholds import Thresholds

NAMED_MAX = 16
"""More cards than this are in the column `gpus`, but not in the sentence."""


class GroupKey(NamedTuple):
    """The fields that cards must share to be announced in one message."""

    finding: str
    hostname: str
    namespace: str | None
    code: float | None = None
    """The value of an event: two XIDs ask for two actions."""


class Member(NamedTuple):
    """A card with an active alert."""

    alert: Alert
    """The last alert about it."""
    is_flapping: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Cards that are announced in one message."""

    announced: Alert
    """The last message."""
    announced_at: int
    members: Mapping[str, Member]
    """The cards with active alerts, by GPU."""

    @property
    def has_unannounced(self) -> bool:
        """Whether cards were raised since the last message."""
        return not self.members.keys() <= set(self.announced.gpus)


Groups = Mapping[GroupKey, Group]


def step(
    groups: Groups, alerts: Iterable[Alert], now: int, thresholds: Thresholds
) -> tuple[Groups, list[Alert]]:
    """Apply the alerts of single cards in one window; `now` is the end of the window."""
    messages: list[Alert] = []
    changes = _changes(groups, alerts, messages)
    for key, group in groups.items():
        if group.has_unannounced:
            changes.setdefault(key, [])
    if not changes:
        return groups, messages
    after = dict(groups)
    for key, news in changes.items():
        changed, message = _changed(groups.get(key), news, now, thresholds)
        messages += [message] if message else []
        if changed is None:
            del after[key]
        else:
            after[key] = changed
    return after, messages


def _changes(
    groups: Groups, alerts: Iterable[Alert], alone: list[Alert]
) -> dict[GroupKey, list[Alert]]:
    """Divide alerts into groups; those without a group go to `alone`."""
    found: dict[GroupKey, list[Alert]] = {}
    homes: dict[tuple[str, str], GroupKey] | None = None
    for alert in alerts:
        if homes is None:
            # A card stays in its group even if its namespace changes.
            homes = {
                (gpu, key.finding): key for key, each in groups.items() for gpu in each.members
            }
        key = homes.get((alert.gpu_id, alert.finding)) or _home(alert)
        if key is None:
            alone.append(alert)
        else:
            found.setdefault(key, []).append(alert)
    return found


def _home(alert: Alert) -> GroupKey | None:
    """Return the group that a card joins; None if it is announced alone.

    A card that is repeated or cleared without a group was raised before groups were kept.
    """
    joins = alert.state in (State.RAISED, State.FLAPPING)
    if not joins or not alert.hostname or alert.gpu_id.startswith(HOST_PREFIX):
        return None
    code = alert.value if is_event(alert.finding) else None
    return GroupKey(alert.finding, alert.hostname, alert.namespace, code)


def _changed(
    group: Group | None, news: list[Alert], now: int, thresholds: Thresholds
) -> tuple[Group | None, Alert | None]:
    members = dict(group.members) if group else {}
    for alert in news:
        before = members.pop(alert.gpu_id, None)
        if alert.state != State.CLEARED:
            flaps = alert.state == State.FLAPPING or (before is not None and before.is_flapping)
            members[alert.gpu_id] = Member(alert, flaps)
    if group is None:
        announced = _message(None, members, _raised(members))
        return Group(announced, now, members), announced
    if not members:
        last_seen = max(each.last_seen for each in (group.announced, *news))
        return None, group.announced._replace(state=State.CLEARED.value, last_seen=last_seen)
    state = _state(group, members, news, now, thresholds)
    if state is None:
        return Group(group.announced, group.announced_at, members), None
    other = next((each for each in news if _is_other_event(group, each)), None)
    announced = _message(group.announced, members, state, other)
    return Group(announced, now, members), announced


def _state(
    group: Group,
    members: Mapping[str, Member],
    news: list[Alert],
    now: int,
    thresholds: Thresholds,
) -> State | None:
    """Return the state to announce for an open group, None if there is nothing to announce."""
    if any(_rank(each.alert) > _rank(group.announced) for each in members.values()):
        return _raised(members)
    if any(_is_other_event(group, each) for each in news):
        return State.STILL
    silent = now - group.announced_at
    if not members.keys() <= set(group.announced.gpus) and silent >= us(thresholds.group_every_s):
        return _raised(members)
    # Cards that were raised at different times are repeated at different times: use the first.
    is_repeated = any(each.state == State.STILL for each in news)
    return State.STILL if is_repeated and silent >= us(thresholds.still_every_s) // 2 else None


def _raised(members: Mapping[str, Member]) -> State:
    return State.FLAPPING if all(each.is_flapping for each in members.values()) else State.RAISED


def _is_other_event(group: Group, alert: Alert) -> bool:
    before = group.members.get(alert.gpu_id)
    if before is None or alert.state != State.STILL:
        return False
    return is_event(alert.finding) and alert.value != before.alert.value


def _message(
    announced: Alert | None, members: Mapping[str, Member], state: State, about: Alert | None = None
) -> Alert:
    """Return a message about one card, by default the most severe, that lists all of them."""
    latest = [members[gpu].alert for gpu in sorted(members)]
    most_severe = max(latest, key=_rank)
    origin = announced or latest[0]
    return (about or most_severe)._replace(
        alert_id=origin.alert_id,
        state=state.value,
        severity=max((origin, most_severe), key=_rank).severity,
        gpu_id=origin.gpu_id,
        hostname=origin.hostname,
        namespace=origin.namespace,
        first_seen=min(each.first_seen for each in (origin, *latest)),
        last_seen=max(each.last_seen for each in (origin, *latest)),
        message=_sentence(about or most_severe, [each.gpu_id for each in latest]),
        gpus=tuple(each.gpu_id for each in latest),
    )


def _sentence(alert: Alert, gpus: list[str]) -> str:
    if len(gpus) == 1:
        return alert.message
    detail = alert.message.removeprefix(f"{alert.gpu_id} on {alert.hostname}: ")
    named = ", ".join(gpus[:NAMED_MAX])
    more = f" and {len(gpus) - NAMED_MAX} more" if len(gpus) > NAMED_MAX else ""
    return f"{len(gpus)} GPUs on {alert.hostname}: {detail}; {named}{more}"


def _rank(alert: Alert) -> int:
    return Severity(alert.severity).rank

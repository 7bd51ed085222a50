"""Stores the topic of a lake, and refuses runs that would read another one.

The checkpoints of a lake hold offsets of one topic. With another topic the same numbers mean other
messages, so that some would be read twice and others never. The lake keeps the name and the id of
its topic and the id of the cluster:

    LAKE/_lake/source.json    {"topic": "gpu-telemetry", "topic_id": "...", "cluster_id": "..."}

`check` compares them with the topic of a run. For a lake of an earlier version, which has no such
file, the offsets in its checkpoints name the topic.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

from barnabas.telemetry.lake import lake_checkpoints
from barnabas.telemetry.lake.lake import Lake

FILE = "_lake/source.json"
READERS = ("bronze", "silver")
"""The jobs that read the topic."""


class WrongSourceError(Exception):
    """The lake was filled from another topic; the text says what to do."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A topic of a cluster. An id is None if it is not known."""

    topic: str
    topic_id: str | None = None
    cluster_id: str | None = None


def known_source(lake: Lake) -> Source | None:
    """Return the topic of the lake; None if it has not read anything yet."""
    positions = [found for job in READERS if (found := lake_checkpoints.position(lake, job))]
    if not positions:
        return None
    text = lake.text(FILE)
    return _from_positions(positions) if text is None else Source(**json.loads(text))


def record(lake: Lake, source: Source) -> None:
    """Store the topic of the lake."""
    lake.put(FILE, json.dumps(asdict(source)).encode())


def check(lake: Lake, found: Source | None, wanted_topic: str) -> None:
    """Raise unless the lake can continue with the topic; `found` is None if it does not exist."""
    known = known_source(lake)
    if known is None:
        return
    problem = _problem(known, found, wanted_topic)
    if problem is not None:
        raise WrongSourceError(f"{lake.root} was filled from {problem}")


def rebind(lake: Lake, found: Source) -> None:
    """Continue the lake with another topic, from its beginning.

    A topic with the same id is the same one, on any cluster: its offsets stay.
    """
    known = known_source(lake)
    if known is not None and _problem(known, found, found.topic):
        is_same = known.topic_id is not None and known.topic_id == found.topic_id
        for job in () if is_same else READERS:
            lake_checkpoints.start_over(lake, job)
    record(lake, found)


def _problem(known: Source, found: Source | None, wanted_topic: str) -> str | None:
    """Return the problem, as the end of a sentence; None if there is none."""
    if known.topic != wanted_topic:
        return (
            f'topic "{known.topic}", not from "{wanted_topic}". Pass --topic {known.topic}, or '
            f'another --lake. --rebind lets this lake go on with "{wanted_topic}", read from its '
            "beginning"
        )
    if found is None:
        return (
            f'topic "{known.topic}", which these brokers do not have. Pass the --bootstrap of its '
            "cluster, or create the topic and pass --rebind"
        )
    if known.cluster_id and found.cluster_id and known.cluster_id != found.cluster_id:
        return (
            f'topic "{known.topic}" of cluster {known.cluster_id}; these brokers are cluster '
            f"{found.cluster_id}. Pass the --bootstrap of the first one, or another --lake. "
            "--rebind lets this lake go on with the topic of the same name here"
        )
    if known.topic_id and found.topic_id and known.topic_id != found.topic_id:
        return (
            f'topic "{known.topic}", which was deleted and created again since: its id was '
            f"{known.topic_id} and is {found.topic_id}. Pass --rebind to let this lake go on with "
            "the new topic, read from its beginning, or pass another --lake"
        )
    return None


def _from_positions(positions: list[dict[str, Any]]) -> Source | None:
    for each in positions:
        for topic in each:
            if not topic.startswith("@"):
                return Source(topic=topic, topic_id=each.get("@topicIds", {}).get(topic))
    return None

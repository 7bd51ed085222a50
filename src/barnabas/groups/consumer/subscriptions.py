"""The topics that members subscribe to, by name or by pattern, and a hash of them."""

from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b

from barnabas.groups.consumer.consumer_member import Member, ResolvedRegex
from barnabas.metadata.image import Image
from barnabas.model.ids import TopicId
from barnabas.model.name_pattern import NamePattern


def subscribed_topics(
    members: Iterable[Member], regexes: Mapping[str, ResolvedRegex]
) -> frozenset[str]:
    """Return every topic that some member subscribes to, existing or not."""
    profiles = [member.profile for member in members]
    patterns = {profile.regex for profile in profiles} & regexes.keys()
    return frozenset[str]().union(
        *(profile.names for profile in profiles), *(regexes[name].topics for name in patterns)
    )


def topic_ids(member: Member, regexes: Mapping[str, ResolvedRegex], image: Image) -> set[TopicId]:
    """Return the existing topics that a member subscribes to."""
    names = subscribed_topics([member], regexes)
    return {image.topics[name].topic_id for name in names if name in image.topics}


def metadata_hash(names: Collection[str], image: Image) -> int:
    """Return a hash that changes when these topics are created, get partitions or are deleted.

    It is 0 if there are none. Kafka's hash is different. If a coordinator finds another hash than
    the stored one, it costs one rebalance.
    """
    found = [image.topics[name] for name in sorted(names) if name in image.topics]
    if not found:
        return 0
    hashed = blake2b(digest_size=8)
    for topic in found:
        hashed.update(topic.topic_id + len(topic.partitions).to_bytes(4, "big"))
    return int.from_bytes(hashed.digest(), "big", signed=True)


def resolve(pattern: str, image: Image) -> frozenset[str]:
    """Return the topics whose whole name a pattern matches, without internal topics."""
    matches = NamePattern(pattern).matches
    return frozenset(
        topic.name
        for topic in image.topics.values()
        if not topic.is_internal and matches(topic.name)
    )

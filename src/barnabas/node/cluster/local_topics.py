"""The logs on this broker: opens, configures and drops them as the metadata says.

A broker has a log for each partition that names it as a replica. In a cluster it opens a few at a
time, since others wait for its heartbeats meanwhile. It retries logs that the disk refuses to open.
When a replica moves away or its topic is deleted, its folder is renamed at once, and removed in the
background.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from barnabas.effects import Effect, MakeDurable, Notice, Remove, Scan
from barnabas.metadata import topic_config
from barnabas.metadata.image import Image, PartitionImage, TopicImage
from barnabas.metadata.metadata_records import MetadataRecord
from barnabas.metadata.topic_config import TopicConfig
from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.ports import Disk
from barnabas.model.settings import Settings
from barnabas.model.steps import Steps
from barnabas.model.timers import Timers
from barnabas.node.chores.checkpointing import Points
from barnabas.node.partitions.group_commit import GroupCommit
from barnabas.node.partitions.partition import Partition, log_settings
from barnabas.node.topic_traffic import Traffic
from barnabas.storage.changes import Sync
from barnabas.storage.ownership import Owned, own_folder
from barnabas.storage.recovery import Recovered, open_log
from barnabas.storage.rolling import SealingByAge

TOPICS_FOLDER = "topics"
DELETED_FOLDER = "deleted"
STRANGERS_FOLDER = "strangers"
REOPEN_AFTER_MS = 1000
OPENED_AT_ONCE = 2
"""How many logs are opened within one event once clients are served: each makes folders and files,
and takes milliseconds."""
OPENED_IN_A_CLUSTER = 8
"""How many logs are opened within one event before that: a millisecond passes between two events,
and a broker leads what it has opened."""
LANE = "opening of logs"
NAMED_AT_MOST = 10
RETIRED_NAME = re.compile("[0-9a-f]{32}(-[0-9]+)?")
"""The name of a retired folder: a topic's id, and the number of a partition for a single one."""
DISCARDED_AT_ONCE = 40
"""How many folders of deleted topics are renamed within one event."""

ReplicasByNumber = dict[int, Partition]


class TopicsHost(Protocol):
    """What the logs on this broker need from it."""

    @property
    def image(self) -> Image:
        """The committed metadata."""

    @property
    def topic_defaults(self) -> dict[str, str]:
        """The configs that topics inherit."""

    def config_of(self, topic: TopicImage) -> TopicConfig:
        """Return a topic's config, with what it inherits."""

    def give_role(self, partition: Partition, placed: PartitionImage) -> None:
        """Have a replica lead or follow."""

    def leadership_changed(self, partition: TopicPartition) -> None:
        """Act on a replica that is dropped, or led in another epoch."""

    def metadata_changed(self, changes: Sequence[MetadataRecord] | None) -> None:
        """Act on metadata again; None says that everything may be different."""


class LocalTopics:
    """Every replica on this broker."""

    def __init__(
        self,
        host: TopicsHost,
        settings: Settings,
        disk: Disk,
        timers: Timers,
        outbox: list[Effect],
        commits: GroupCommit,
        traffic: Traffic | None = None,
    ) -> None:
        self._host = host
        self._me = settings.broker.node_id
        self._data = settings.broker.data_dir
        self._is_alone = not settings.cluster.voters
        self._disk = disk
        self._timers = timers
        self._outbox = outbox
        self._commits = commits
        self._traffic = traffic
        self.partitions: dict[TopicPartition, Partition] = {}
        self.by_id: dict[TopicId, ReplicasByNumber] = {}
        self.by_name: dict[str, ReplicasByNumber] = {}
        self.on_opened: Callable[[Partition], None] = lambda _: None
        self._configured: dict[TopicId, tuple[dict[str, str], dict[str, str]]] = {}
        self._refused: set[TopicId] = set()
        """Topics of which a log could not be opened because the disk refused."""
        self._reopening = False
        self._unopened: dict[TopicId, None] = {}
        """Topics of which more logs are to be opened soon."""
        self.serves = False
        """Whether clients may be waiting while logs are opened."""
        self._when_open: list[Pending[None]] = []
        self._opening = False
        self._opened_at_once = OPENED_AT_ONCE if self._is_alone else OPENED_IN_A_CLUSTER
        self._turns_left = self._opened_at_once
        self._to_discard: dict[str, str] = {}
        """Folders that are to be renamed and deleted, in this order, with their new names."""
        self._discards_left = DISCARDED_AT_ONCE
        self._discarding = False
        self._by_age = SealingByAge(lambda: timers.now_ms)
        self.left_behind = Points({}, {})
        """The checkpointed offsets of logs that were not opened yet."""
        self._clean = False

    def begin(
        self,
        *,
        clean: bool,
        recovery_points: dict[TopicPartition, int],
        high_watermarks: dict[TopicPartition, int],
    ) -> None:
        """Take the checkpoints of the last process, before any log is opened."""
        self._clean = clean
        self.left_behind = Points(recovery_points, high_watermarks)

    def folder(self, name: str) -> str:
        """Return where a topic's partitions lie."""
        return f"{self._data}/{TOPICS_FOLDER}/{name}"

    def was_refused(self, topic: TopicImage) -> bool:
        """Tell whether the disk refused to open a log of a topic."""
        return topic.topic_id in self._refused

    @property
    def offline_replicas(self) -> int:
        """How many replicas could not be opened, for the disk refused."""
        topics = filter(None, map(self._host.image.topic_by_id, self._refused))
        return sum(
            len(self._wanted(topic)) - len(self.by_id.get(topic.topic_id, ())) for topic in topics
        )

    def is_open(self, topic: TopicImage) -> bool:
        """Tell whether every replica of a topic that belongs here is open."""
        return len(self.by_id.get(topic.topic_id, ())) >= len(self._wanted(topic))

    def reconcile(
        self, topics: Iterable[TopicImage], deleted: Iterable[TopicId] | None
    ) -> list[str]:
        """Bring the replicas of some topics in line with the image; drop those of deleted topics.

        Without a list of deleted topics, look for them. Return their names.
        """
        # Dropped first: a topic that is created again has the same name and folder.
        names = self._host.image.names
        suspects = list(self.by_id if deleted is None else filter(self.by_id.__contains__, deleted))
        gone = [self._drop_topic(topic_id) for topic_id in suspects if topic_id not in names]
        defaults = self._host.topic_defaults
        if not self._unopened:
            self._turns_left = self._opened_at_once
        for topic in topics:
            self._settle(topic, defaults)
        self._open_soon()
        return gone

    def when_open(self) -> Pending[None]:
        """Answer once all logs that were to be opened soon are open."""
        answer: Pending[None] = Pending()
        self._when_open.append(answer)
        if not self._unopened:
            self._tell_open()
        return answer

    def _tell_open(self) -> None:
        told, self._when_open = self._when_open, []
        for answer in told:
            answer.complete(None)

    def _settle(self, topic: TopicImage, defaults: dict[str, str]) -> None:
        """Bring the replicas of one topic in line with the image."""
        wanted = self._wanted(topic)
        for number in [n for n in self.by_id.get(topic.topic_id, ()) if n not in wanted]:
            self._drop_replica(topic, number)
        if len(self.by_id.get(topic.topic_id, ())) < len(wanted):
            self._try_to_open(topic, wanted)
        self._configure(topic, defaults)
        for number, partition in self.by_id.get(topic.topic_id, {}).items():
            if partition.placed != topic.partitions[number]:
                self._host.give_role(partition, topic.partitions[number])

    def report_strangers(self) -> None:
        """Continue deletions that a stop interrupted; report folders that no topic owns."""
        outbox, disk = self._outbox, self._disk
        deleted = f"{self._data}/{DELETED_FOLDER}"
        ignored = []
        for name in disk.list(deleted):
            if RETIRED_NAME.fullmatch(name):
                outbox.append(Remove((f"{deleted}/{name}",), delay_ms=0))
            else:
                ignored.append(name)
        self._report_ignored(deleted, ignored)
        base = f"{self._data}/{TOPICS_FOLDER}"
        for name in disk.list(base):
            if name not in self._host.image.topics:
                facts = {"folder": f"{base}/{name}"}
                outbox.append(Notice("warning", "a folder belongs to no topic", facts))

    def report(self, what: str, recovered: Recovered) -> None:
        """Report to the operator what opening a log has shown."""
        if recovered.truncated_bytes:
            facts: dict[str, object] = {"log": what, "bytes": recovered.truncated_bytes}
            self._outbox.append(
                Notice("warning", "truncated an incomplete batch at the end of a log", facts)
            )
        for problem in recovered.problems:
            facts = {"log": what, "problem": problem}
            self._outbox.append(Notice("error", "repaired a log", facts))
        self._report_ignored(recovered.log.folder, recovered.ignored)

    def _report_ignored(self, folder: str, names: Sequence[str]) -> None:
        """Report the files in a folder that are not the broker's, so that the operator can look."""
        if names:
            shown = [n if n.isprintable() else ascii(n) for n in names[:NAMED_AT_MOST]]
            facts = {"folder": folder, "count": len(names), "names": shown}
            event = "ignored files that are not the broker's"
            self._outbox.append(Notice("warning", event, facts))

    def _wanted(self, topic: TopicImage) -> dict[int, None]:
        """Return the partitions of a topic that belong here."""
        me = self._me
        return {n: None for n, placed in enumerate(topic.partitions) if me in placed.replicas}

    def _configure(self, topic: TopicImage, defaults: dict[str, str]) -> None:
        """Apply a topic's configuration if it changed; computing it is expensive."""
        source = (topic.config, defaults)
        if self._configured.get(topic.topic_id) == source:
            return
        self._configured[topic.topic_id] = (dict(topic.config), defaults)
        config = topic_config.resolve(topic.config, defaults)
        for partition in self.by_id.get(topic.topic_id, {}).values():
            if partition.config != config:
                partition.configure(config)

    def _try_to_open(self, topic: TopicImage, wanted: Iterable[int]) -> None:
        """Open the logs of a topic that are not open; if the disk refuses, try again later."""
        try:
            self._open(topic, wanted)
        except (OSError, StorageError) as error:
            if topic.topic_id not in self._refused:
                self._refused.add(topic.topic_id)
                facts = {"topic": topic.name, "problem": str(error)}
                event = "cannot open a topic's logs yet"
                self._outbox.append(Notice("error", event, facts))
            if not self._reopening:
                self._reopening = True
                self._timers.after(REOPEN_AFTER_MS, self._reopen)
        else:
            self._refused.discard(topic.topic_id)

    def _open_soon(self) -> None:
        if not self._unopened or self._opening:
            return
        self._opening = True
        if self._is_alone:
            self._outbox.append(Scan(LANE, LANE, self._open_in_steps()))
        else:
            self._timers.after(1, self._open_more)

    def _open_in_steps(self) -> Steps[None]:
        while self._unopened:
            yield None
            self._open_some()
        self._opening = False
        self._tell_open()

    def _open_more(self) -> None:
        self._opening = False
        self._open_some()
        self._open_soon()

    def _open_some(self) -> None:
        """Continue with the logs that are to be opened later, topic by topic."""
        self._turns_left = self._opened_at_once
        defaults = self._host.topic_defaults
        while self._unopened and self._turns_left:
            topic_id = next(iter(self._unopened))
            del self._unopened[topic_id]
            topic = self._host.image.topic_by_id(topic_id)
            if topic is not None:
                self._settle(topic, defaults)
        self._turns_left = self._opened_at_once

    def _reopen(self) -> None:
        self._reopening = False
        self._host.metadata_changed(None)

    def _open(self, topic: TopicImage, wanted: Iterable[int]) -> None:
        opened = self.by_id.setdefault(topic.topic_id, {})
        self.by_name[topic.name] = opened
        defers = self.serves or not self._is_alone
        if defers and not self._turns_left:
            self._unopened[topic.topic_id] = None
            return
        config = self._host.config_of(topic)
        aside = f"{self._data}/{STRANGERS_FOLDER}"
        self._free(self.folder(topic.name))
        owned = own_folder(self._disk, self.folder(topic.name), topic.topic_id, aside)
        if owned.problem:
            facts = {"topic": topic.name, "problem": owned.problem}
            event = "a topic's folder was not as expected"
            self._outbox.append(Notice("warning", event, facts))
        for number in wanted:
            if number in opened:
                continue
            if defers and not self._turns_left:
                self._unopened[topic.topic_id] = None
                return
            self._turns_left -= 1
            opened[number] = self._open_replica(topic, number, config, owned)

    def _open_replica(
        self, topic: TopicImage, number: int, config: TopicConfig, owned: Owned
    ) -> Partition:
        name = TopicPartition(topic.name, number)
        known = TopicPartition(topic.topic_id.hex(), number)
        self._free(f"{self.folder(topic.name)}/{number}")
        recovered = open_log(
            self._disk,
            f"{self.folder(topic.name)}/{number}",
            log_settings(config),
            root=self._data,
            clean=self._clean and known in self.left_behind.recovery_points,
            recovery_point=self.left_behind.recovery_points.get(known, 0),
        )
        self.left_behind.recovery_points.pop(known, None)
        recovered.log.by_age = self._by_age
        owned.become_safe_with(recovered.log)
        self.report(str(name), recovered)
        partition = Partition(
            name,
            topic.topic_id,
            recovered.log,
            config,
            self._outbox,
            self._commits,
            self.left_behind.high_watermarks.pop(known, 0),
        )
        partition.health.lost_records = recovered.lost_synced
        partition.health.damaged_at = recovered.damaged_from
        if not recovered.log.is_synced:
            self._commits.left_unsynced(partition.flusher)
        if self._traffic is not None:
            partition.count_in(self._traffic.of(topic.name))
        self.partitions[name] = partition
        self.on_opened(partition)
        return partition

    def _drop_topic(self, topic_id: TopicId) -> str:
        """Stop serving a topic; return its name."""
        dropped = self.by_id.pop(topic_id)
        self._configured.pop(topic_id, None)
        self._refused.discard(topic_id)
        name = self._name_of(dropped)
        del self.by_name[name]
        if self._traffic is not None:
            self._traffic.forget(name)
        for partition in dropped.values():
            del self.partitions[partition.name]
        for partition in dropped.values():  # no request can find them now
            partition.retire()
        self._discard(self.folder(name), topic_id.hex())
        return name

    def _name_of(self, copies: ReplicasByNumber) -> str:
        for partition in copies.values():
            return partition.name.topic
        return next(name for name, opened in self.by_name.items() if opened is copies)

    def _drop_replica(self, topic: TopicImage, number: int) -> None:
        """Drop a replica that moved away; waiting requests fail, and clients ask its leader."""
        partition = self.by_id[topic.topic_id].pop(number)
        del self.partitions[partition.name]
        partition.follow(topic.partitions[number])
        partition.retire()
        self._host.leadership_changed(partition.name)
        self._discard(f"{self.folder(topic.name)}/{number}", f"{topic.topic_id.hex()}-{number}")

    def _discard(self, folder: str, retired_name: str) -> None:
        """Rename a folder, and have it deleted; if there are many, some a little later."""
        self._to_discard[folder] = retired_name
        if self._discards_left:
            self._discard_first()
        elif not self._discarding:
            self._discarding = True
            self._timers.after(1, self._discard_some)

    def _discard_some(self) -> None:
        self._discarding, self._discards_left = False, DISCARDED_AT_ONCE
        while self._to_discard and self._discards_left:
            self._discard_first()
        if self._to_discard or not self._discards_left:
            self._discarding = True
            self._timers.after(1, self._discard_some)

    def _free(self, folder: str) -> None:
        """Rename folders, in their order, until the one is gone whose name is needed again."""
        while folder in self._to_discard:
            self._discard_first()

    def discard_all(self) -> None:
        """Rename the remaining folders now: the node stops."""
        while self._to_discard:
            self._discard_first()

    def _discard_first(self) -> None:
        """Rename the next folder, and have it deleted once that is durable.

        The rename must be durable before any file is removed: the replica may return to this
        broker, and half of one that a power cut restores looks as if records were deleted.
        """
        folder = next(iter(self._to_discard))
        retired_name = self._to_discard.pop(folder)
        self._discards_left = max(0, self._discards_left - 1)
        base, disk, outbox = f"{self._data}/{DELETED_FOLDER}", self._disk, self._outbox
        try:
            if not disk.exists(base):
                disk.make_folder(base)
            retired = self._unused_name(f"{base}/{retired_name}")
            disk.rename(folder, retired)
        except OSError as error:
            facts = {"folder": folder, "problem": str(error)}
            outbox.append(Notice("error", "cannot remove the folder of a deleted topic", facts))
            return
        safe = Sync(folders=(base, folder.rpartition("/")[0]))
        removal = Remove((retired,), delay_ms=0)
        outbox.append(MakeDurable(safe, lambda: outbox.append(removal)))

    def _unused_name(self, path: str) -> str:
        """Return an unused name for a folder: an earlier folder of the name may still be there."""
        number, name = 0, path
        while self._disk.exists(name):
            number += 1
            name = f"{path}.{number}"
        return name

"""A metadata quorum of one on a disk, without the node around it."""

from collections.abc import Sequence
from random import Random

from barnabas.effects import Effect, Flush, MakeDurable
from barnabas.metadata.image import Image
from barnabas.metadata.metadata_records import MetadataRecord
from barnabas.model.pending import Pending
from barnabas.model.ports import Disk
from barnabas.model.settings import BrokerSettings, ClusterSettings, Settings
from barnabas.model.timers import Timers
from barnabas.node.cluster.metadata_quorum import Quorum
from barnabas.storage.flush import carry_out


class LoneQuorum:
    """An open quorum that is in control, as on a single node; syncs wait until `sync`."""

    def __init__(self, disk: Disk, *, snapshot_after_records: int = 20_000) -> None:
        self.disk = disk
        self.outbox: list[Effect] = []
        settings = Settings(
            broker=BrokerSettings(data_dir="data"),
            cluster=ClusterSettings(snapshot_after_records=snapshot_after_records),
        )
        self.quorum = Quorum(
            settings, disk, Timers(), self.outbox, Random(1), self, lambda *_: None
        )
        self.quorum.open()
        self.quorum.raft.start()
        self.settle()

    @property
    def image(self) -> Image:
        """The committed records."""
        return self.quorum.image

    def metadata_changed(self, changes: Sequence[MetadataRecord] | None) -> None:
        """Do nothing: no part depends on it here."""

    def became_controller(self) -> None:
        """Do nothing: this node is always the controller."""

    def lost_control(self) -> None:
        """Do nothing: this node never resigns."""

    def propose(self, *changes: MetadataRecord) -> Pending[None]:
        """Propose records, which are committed once they are synced."""
        return self.quorum.propose(changes, 0)

    def commit_now(self, *changes: MetadataRecord) -> None:
        """Propose records and commit them at once."""
        self.quorum.propose(changes, 0)
        self.quorum.raft.commit_now()
        self.settle()

    def settle(self) -> None:
        """Carry out every requested sync."""
        while any(isinstance(effect, Flush | MakeDurable) for effect in self.outbox):
            self.sync()

    def sync(self) -> None:
        """Carry out the requested syncs, and report them."""
        effects = self.outbox[:]
        self.outbox.clear()
        for effect in effects:
            if isinstance(effect, Flush):
                carry_out(self.disk, effect.task)
                effect.done()
            elif isinstance(effect, MakeDurable):
                effect.sync.carry_out(self.disk)
                effect.done()

    def close(self) -> None:
        """Stop cleanly."""
        self.quorum.raft.close()

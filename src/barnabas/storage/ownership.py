"""Whose records lie in a topic's folder.

Folders are named after topics, and a name is used again after a deletion. A crash may undo the
rename that took an old topic's folder out of the way, so each folder says which topic it
belongs to, and what belongs to another is set aside rather than served in the new one's name.
"""

from typing import NamedTuple

from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicId
from barnabas.model.ports import Disk
from barnabas.storage.checkpoints import seal, unseal
from barnabas.storage.log import Log

OWNER_FILE = "topic-id"


class Owned(NamedTuple):
    """A folder that is this topic's, what must be synced for it to stay so, what was wrong."""

    paths: tuple[str, ...]
    folders: tuple[str, ...]
    problem: str

    def become_safe_with(self, log: Log) -> None:
        """Have the log's first flush sync the folder's owner, ahead of any promise."""
        log.unsynced.add_paths(self.paths)
        log.unsynced.add_folders(self.folders)


def own_folder(disk: Disk, folder: str, topic_id: TopicId, strangers: str) -> Owned:
    """Make sure that a topic's folder exists and holds nothing of another topic.

    What it holds of another goes under `strangers`, by that topic's id: a topic's name may be
    as long as a file's name can be.
    """
    owner, problem = _owner(disk, folder)
    if owner == topic_id.hex():
        return Owned((), (), "")
    if owner:
        disk.make_folder(strangers)
        aside = f"{strangers}/{owner}"
        disk.rename(folder, aside)
        problem = f"it held another topic's records, which are now in {aside}"
    path = f"{folder}/{OWNER_FILE}"
    disk.make_folder(folder)
    disk.write_atomic(path, seal(f"{topic_id.hex()}\n"), sync=False)
    parent = folder.rpartition("/")[0]
    return Owned((path,), (folder, parent, parent.rpartition("/")[0]), problem)


def _owner(disk: Disk, folder: str) -> tuple[str, str]:
    """Return the id in a folder, empty where it has none, and what is wrong with it."""
    path = f"{folder}/{OWNER_FILE}"
    if not disk.exists(path):
        return "", ""
    try:
        return unseal(disk.read_bytes(path)).strip(), ""
    except StorageError as error:
        # Synced before any record was: so this is not a crash's doing, and the records are good.
        return "", f"{path} is written anew: {error}"

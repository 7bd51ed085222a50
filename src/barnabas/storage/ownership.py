"""Records which topic a folder belongs to.

Folders are named after topics, and a name is used again after a deletion. A crash may undo the
rename that moved an old topic's folder away. So a file in each folder names the topic by id, and a
folder that belongs to another topic is moved aside instead of served as the new one.
"""

from typing import NamedTuple

from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicId
from barnabas.model.ports import Disk
from barnabas.storage.checkpoints import seal, unseal
from barnabas.storage.log import Log

OWNER_FILE = "topic-id"


class Owned(NamedTuple):
    """A folder that belongs to this topic, its owner file, and the problem that was found."""

    path: str
    problem: str

    def become_safe_with(self, log: Log) -> None:
        """Have the log's first flush sync the folder's owner file, before any acknowledgement."""
        log.unsynced.add_paths((self.path,))
        log.unsynced.add_folders((self.path.rpartition("/")[0],))


def own_folder(disk: Disk, folder: str, topic_id: TopicId, strangers: str) -> Owned:
    """Make sure that a topic's folder exists and has no files of another topic.

    The folder of another topic is moved to the folder `strangers`, under that topic's id: a topic's
    name may be as long as a file name can be.
    """
    path = f"{folder}/{OWNER_FILE}"
    owner, problem = _owner(disk, path)
    if owner == topic_id.hex():
        return Owned(path, "")
    if owner:
        disk.make_folder(strangers)
        aside = f"{strangers}/{owner}"
        disk.rename(folder, aside)
        problem = f"it held another topic's records, which are now in {aside}"
    disk.make_folder(folder)
    disk.write_atomic(path, seal(f"{topic_id.hex()}\n"), sync=False)
    return Owned(path, problem)


def _owner(disk: Disk, path: str) -> tuple[str, str]:
    """Return the id in a folder's owner file, empty if there is none, and the problem, if any."""
    if not disk.exists(path):
        return "", ""
    try:
        return unseal(disk.read_bytes(path)).strip(), ""
    except StorageError as error:
        # It was synced before any record: so a crash is not the cause, and the records are good.
        return "", f"{path} is written again: {error}"

"""Three brokers that share a transaction: its coordinator, its partitions and its group."""

from pathlib import Path

from barnabas.metadata.image import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from tests.support.talk.dialogue import Exchange
from tests.support.talk.together import Together
from tests.support.talk.transaction_requests import NAME

COORDINATOR = TopicPartition(TRANSACTIONS_TOPIC, 0)
GROUPS = TopicPartition(GROUPS_TOPIC, 0)
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def spread(folder: Path) -> Together:
    """Broker 1 is the coordinator, 2 and 3 lead the partitions, the group is on 3."""
    made = Together(folder)
    made.create("a", [2, 3])
    made.create(TRANSACTIONS_TOPIC, [1], {"cleanup.policy": "compact"})
    made.create(GROUPS_TOPIC, [3], {"cleanup.policy": "compact"})
    return made


def state(brokers: Together, number: int = 1) -> str:
    """Return the coordinator's description of the transaction."""
    shard = brokers[number].node.coordinators.transactions.shard_for(NAME)
    found = shard.machine.describe(NAME).response
    assert not isinstance(found, Pending)
    return found.state.label


def commit_code(exchange: Exchange) -> int:
    """Return the error code of a commit of one offset."""
    ((part,),) = [topic.partitions for topic in exchange.answer.topics]
    found: int = part.error_code
    return found

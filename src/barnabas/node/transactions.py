"""The node's side of transactions: who may write in one, and the markers that end it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending

if TYPE_CHECKING:
    from barnabas.node.node import Node

Admitted = dict[TopicPartition, ErrorCode]


class Transactions:
    """Asks the coordinator of a transaction, wherever it is."""

    def __init__(self, node: "Node") -> None:
        self._node = node

    def admit(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Pending[Admitted]:
        """Make sure that partitions are part of a producer's open transaction.

        With `adds` those that are not become part of it (transaction version 2); else they are
        refused. Answers an error code, 0 for none, for each partition.
        """
        raise NotImplementedError

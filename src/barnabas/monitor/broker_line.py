"""The requests of one collection to one broker, over a connection that stays for the next one.

After the first failure a broker is asked nothing more in this collection, so that a broker that
hangs costs one timeout. A connection that the broker closed since the last collection is opened
once more.
"""

from collections.abc import Mapping
from typing import TypeVar

from barnabas.protocol.message import Message
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.pipeline import Pipeline, Pool
from barnabas.wire.wire_failures import LinkError

CEILINGS: Mapping[type[Message], int] = {FetchRequest: 12, OffsetFetchRequest: 9}
"""The last versions that name topics; later ones want their ids."""

M = TypeVar("M", bound=Message)


class BrokerLine:
    """One broker, during one collection."""

    def __init__(self, pool: Pool, broker: int, host: str, port: int) -> None:
        self.broker = broker
        self.host = host
        self.failure: str | None = None
        """Why it does not answer, if it does not."""
        self._pool = pool
        self._port = port
        self._may_be_stale = True

    def ask(self, request: Message, expected: type[M]) -> M:
        """Return the answer of the broker; raise `LinkError` if it fails, now or before."""
        pipeline = self.pipeline()
        try:
            answer = pipeline.ask(request, expected)
        except LinkError as error:
            self._pool.drop(self.host, self._port)
            if self._may_be_stale and not isinstance(error.__cause__, TimeoutError):
                self._may_be_stale = False
                return self.ask(request, expected)
            self.fail(str(error))
            raise
        self._may_be_stale = False
        return answer

    def serves(self, request: type[Message], version: int = 0) -> bool:
        """Return whether the broker serves an API, from a version on."""
        pipeline = self.pipeline()
        try:
            return pipeline.version(request) >= version
        except LinkError:
            return False

    def pipeline(self) -> Pipeline:
        """Return the connection."""
        if self.failure is not None:
            raise LinkError(self.failure)
        try:
            return self._pool.to(self.host, self._port)
        except LinkError as error:
            self.fail(str(error))
            raise

    def fail(self, reason: str) -> None:
        """Close the connection, and ask nothing more in this collection."""
        self.failure = reason
        self._pool.drop(self.host, self._port)

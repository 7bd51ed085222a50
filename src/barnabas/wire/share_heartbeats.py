"""Keeps a member in its share group: heartbeats on a thread and a connection of their own.

The thread that fetches may wait half a minute for a broker that is stuck. The coordinator must not
take the member for dead meanwhile.
"""

import threading
from collections.abc import Callable, Mapping

from barnabas.logs import get
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from barnabas.wire.cluster_wire import Kind, Node, Wire, require
from barnabas.wire.share_membership import RETRY_S, ShareMembership, Step
from barnabas.wire.wire_failures import (
    LinkError,
    LoginError,
    RefusedError,
    UnservedError,
    UnsupportedPropertyError,
)

ANSWER_TIMEOUT_S = 10.0
LAST = (LoginError, UnservedError, UnsupportedPropertyError)
"""Failures that trying again does not change."""

log = get("barnabas.wire")


class ShareHeartbeats:
    """The thread that sends a member's heartbeats."""

    def __init__(
        self,
        properties: Mapping[str, object],
        client_id: str,
        membership: ShareMembership,
        on_change: Callable[[], None],
    ) -> None:
        self._properties, self._client_id = properties, client_id
        self._membership = membership
        self._on_change = on_change
        self._stop = threading.Event()
        self._has_answered = False
        self._wire: Wire | None = None
        self._coordinator: Node | None = None
        self._thread = threading.Thread(target=self._run, name="barnabas-heartbeat", daemon=True)
        self.failure: LinkError | None = None
        """Why the member cannot be in the group; it has stopped trying."""

    def start(self) -> None:
        """Begin to join."""
        self._thread.start()

    def stop(self) -> None:
        """Leave the group, so that others need not wait for the session timeout."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                before = self._membership.assigned
                self._beat()
                if self._membership.assigned != before or self.failure is not None:
                    self._on_change()
                if self.failure is not None:
                    return
                self._stop.wait(self._membership.wait_s)
            self._leave()
        finally:
            self._hang_up()

    def _beat(self) -> None:
        try:
            response = self._ask_coordinator()
        except LinkError as error:
            self._failed(error)
            return
        self._has_answered = True
        step = self._membership.answered(response)
        if step is Step.FIND_COORDINATOR:
            self._coordinator = None
        elif step is Step.FAIL:
            what = f"The share group ({response.error_message or 'its coordinator refused'})"
            try:
                require(response.error_code, what)
            except RefusedError as error:
                self.failure = error

    def _ask_coordinator(self) -> ShareGroupHeartbeatResponse:
        if self._wire is None:
            self._wire = Wire(self._properties, self._client_id, ANSWER_TIMEOUT_S)
        request = self._membership.heartbeat()
        if self._coordinator is None:
            self._coordinator = self._wire.coordinator(Kind.GROUP, request.group_id)
        return self._wire.ask(self._coordinator, request, ShareGroupHeartbeatResponse)

    def _failed(self, error: LinkError) -> None:
        """Connect anew soon; give up if that cannot help, or if no broker ever answered."""
        self._hang_up()
        self._membership.wait_s = RETRY_S
        passes = self._has_answered and not isinstance(error, LAST)
        if isinstance(error, RefusedError):  # the coordinator could not be found
            passes = error.code != ErrorCode.GROUP_AUTHORIZATION_FAILED
        if not passes:
            self.failure = error
        else:
            log.info("a heartbeat of a share consumer failed", error=str(error))

    def _leave(self) -> None:
        if not self._membership.is_member:
            return
        try:
            if self._wire is not None and self._coordinator is not None:
                request = self._membership.leave()
                self._wire.ask(self._coordinator, request, ShareGroupHeartbeatResponse)
        except LinkError as error:
            log.info("a share consumer could not leave its group", error=str(error))

    def _hang_up(self) -> None:
        if self._wire is not None:
            self._wire.__exit__(None, None, None)
        self._wire = self._coordinator = None

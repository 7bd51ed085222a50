"""BrokerHeartbeatRequest and BrokerHeartbeatResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class BrokerHeartbeatRequest(Message):
    """Broker heartbeat request, versions 0-2, flexible from 0."""

    __slots__ = (
        "broker_id",
        "broker_epoch",
        "current_metadata_offset",
        "want_fence",
        "want_shut_down",
        "offline_log_dirs",
        "cordoned_log_dirs",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "broker_id int32 0+",
        "broker_epoch int64 0+ default=-1",
        "current_metadata_offset int64 0+",
        "want_fence bool 0+",
        "want_shut_down bool 0+",
        "offline_log_dirs []uuid 1+ tag=0 tagged=1+",
        "cordoned_log_dirs []uuid 2+ nullable=2+ default=null tag=1 tagged=2+",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        current_metadata_offset: int = 0,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline_log_dirs: list[bytes] = FRESH,
        cordoned_log_dirs: list[bytes] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.current_metadata_offset = current_metadata_offset
        self.want_fence = want_fence
        self.want_shut_down = want_shut_down
        self.offline_log_dirs: list[bytes] = [] if offline_log_dirs is FRESH else offline_log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs


class BrokerHeartbeatResponse(Message):
    """Broker heartbeat response, versions 0-2, flexible from 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "is_caught_up",
        "is_fenced",
        "should_shut_down",
    )
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    FIELDS = (
        "throttle_time_ms int32 0+",
        "error_code int16 0+",
        "is_caught_up bool 0+",
        "is_fenced bool 0+ default=true",
        "should_shut_down bool 0+",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        is_caught_up: bool = False,
        is_fenced: bool = True,
        should_shut_down: bool = False,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.is_caught_up = is_caught_up
        self.is_fenced = is_fenced
        self.should_shut_down = should_shut_down

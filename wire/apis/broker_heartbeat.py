"""BrokerHeartbeat (key 63): a broker tells the controller that it lives, and learns whether it may serve."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, array, boolean, int16, int32, int64, uuid


class BrokerHeartbeatRequest(Request, api_key=63, versions="0-2", flexible="0+"):
    """I live."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()  # up to where it has read the metadata log
    want_fence: bool = boolean()  # asks to be taken out of service
    want_shut_down: bool = boolean()  # asks to hand over what it leads, so that it can leave
    # the ids of log directories that have failed since it started
    offline_log_dirs: list[bytes] = array(uuid(), versions="1+", tag=0)
    # the ids of those that shall get no new partitions (KIP-1066); null: not known yet
    cordoned_log_dirs: list[bytes] | None = array(uuid(), versions="2+", nullable="0+", default=None, tag=1)


class BrokerHeartbeatResponse(Response, api_key=63, versions="0-2", flexible="0+"):
    """What the controller makes of it."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    is_caught_up: bool = boolean()  # has nearly all of the metadata log
    is_fenced: bool = boolean(default=True)  # must not serve
    should_shut_down: bool = boolean()  # has nothing left to hand over

"""BrokerHeartbeat (key 63): a broker reports to the controller that it is alive and learns if it is fenced."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER
from kafkacompat.wire.schema import Request, Response, array, boolean, int16, int32, int64, uuid


class BrokerHeartbeatRequest(Request, api_key=63, versions="0-2", flexible="0+"):
    """Report that the broker is alive, and its state."""

    broker_id: int = int32(entity=BROKER)
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()  # the offset up to which the broker has read the metadata log
    want_fence: bool = boolean()  # the broker requests to be fenced
    want_shut_down: bool = boolean()  # the broker requests to move its leaderships away before it shuts down
    # the ids of log directories that have failed since the broker started
    offline_log_dirs: list[bytes] = array(uuid(), versions="1+", tag=0)
    # the ids of log directories that accept no new partitions (KIP-1066); null if not yet known
    cordoned_log_dirs: list[bytes] | None = array(uuid(), versions="2+", nullable="0+", default=None, tag=1)


class BrokerHeartbeatResponse(Response, api_key=63, versions="0-2", flexible="0+"):
    """The broker's state as the controller decides it."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    is_caught_up: bool = boolean()  # the broker has read nearly all of the metadata log
    is_fenced: bool = boolean(default=True)  # the broker is fenced and serves no clients
    should_shut_down: bool = boolean()  # the broker leads no partition any more and can shut down

"""What every handler is given besides its request, and what it may answer with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from twisted.python.failure import Failure

from kafkacompat.timers import Clock, now_ms
from kafkacompat.wire.schema import Response, Versions

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.config import BrokerConfig
    from kafkacompat.conversion import Conversions
    from kafkacompat.coordinators import Coordinators
    from kafkacompat.metadata.controller import Controller
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.partitions.fetch_sessions import FetchSessions
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.wire.releases import Release


class UnanswerableError(Exception):
    """A request failed in a way that its response cannot say; the connection is closed."""


ResponseType_co = TypeVar("ResponseType_co", bound="Response | None", covariant=True)


@dataclass(frozen=True, slots=True)
class Peer:
    """The two ends of a client's connection and the listener it came in by."""

    listener_name: str
    host: str
    port: int
    local_host: str
    local_port: int


class RequestContext(NamedTuple):
    """Where a request came from and in which dialect it was asked."""

    api_version: int
    client_id: str
    peer: Peer


@dataclass(slots=True)
class Services:
    """Everything a handler may ask; built once by `kafkacompat.broker`.

    ``served`` is what ApiVersions lists, ``features`` the levels that features are at; a listener that looks like another
    broker has its own, and names the release.
    """

    node_id: int
    clock: Clock
    config: BrokerConfig
    metadata: ImageHolder
    controller: Controller
    replica_manager: ReplicaManager
    fetch_sessions: FetchSessions
    coordinators: Coordinators
    conversions: Conversions
    served: Mapping[int, Versions] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    emulated: Release | None = None

    def now_ms(self) -> int:
        """Milliseconds since the epoch, by the clock that was passed in."""
        return now_ms(self.clock)


@dataclass(slots=True)
class Pending(Generic[ResponseType_co]):
    """An answer that comes later.

    The connection starts its next request at once, or behind an answer ``in_order`` when that is there, for requests whose
    effects the next one must see; when ``settled`` fires, if that is earlier. When the client leaves, an ``abandonable``
    answer is cancelled; everything else goes on to its end, for others depend on it.
    """

    response: Deferred[ResponseType_co]
    in_order: bool = False
    abandonable: bool = False
    settled: Deferred[None] | None = None

    def at_once(self) -> ResponseType_co | Pending[ResponseType_co]:
        """The answer, if it did not have to wait after all."""
        response = self.response
        if not response.called or response.paused or isinstance(response.result, Failure):
            return self
        return response.result  # type: ignore[return-value]

"""What every handler receives besides its request, and the ways it may answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from twisted.python.failure import Failure

from kafkacompat.metadata.topic_changes import admit_all
from kafkacompat.quotas.client_quotas import ClientQuotas
from kafkacompat.security.principals import ANONYMOUS, Principal
from kafkacompat.tenancy.registry import Instances
from kafkacompat.tenancy.whitelists import TopicWhitelists
from kafkacompat.timers import Clock, now_ms
from kafkacompat.wire.schema import Response, Versions

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.config import BrokerConfig
    from kafkacompat.conversion import Conversions
    from kafkacompat.coordinators import Coordinators
    from kafkacompat.handlers.cluster_role import ClusterRole, EnclosedRequests
    from kafkacompat.metadata.administration import Administration
    from kafkacompat.metadata.effective import EffectiveConfig
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.metrics.requests import RequestMetrics
    from kafkacompat.partitions.fetch_sessions import FetchSessions
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.quotas.request_meter import RequestMeter
    from kafkacompat.security.acls.authorizer import Authorizer
    from kafkacompat.telemetry.receiver import ClientTelemetry
    from kafkacompat.tenancy.tenant_view import TenantView
    from kafkacompat.wire.releases import Release


UNKNOWN_SOFTWARE = "unknown"


class UnanswerableError(Exception):
    """A request failed in a way that its response cannot express; the connection is closed."""


ResponseType_co = TypeVar("ResponseType_co", bound="Response | None", covariant=True)


@dataclass(frozen=True, slots=True)
class Peer:
    """Both ends of a client's connection, and its listener.

    ``server_name`` is the name in its TLS handshake that led it to an instance; "" if it came otherwise.
    """

    listener_name: str
    host: str
    port: int
    local_host: str
    local_port: int
    server_name: str = ""


@dataclass(slots=True)
class ClientSoftware:
    """The library of a connection's client and its version, as ApiVersions 3 names them; "unknown" before."""

    name: str = UNKNOWN_SOFTWARE
    version: str = UNKNOWN_SOFTWARE


class RequestContext(NamedTuple):
    """The request's connection, API version, client id and principal.

    ``is_forwarded`` is set at the controller for a request that another broker has forwarded in an Envelope (KIP-590); ``peer``
    and ``principal`` are those of the client of that broker then. ``software`` is the connection's, which ApiVersions fills in;
    None where there is no connection. ``meter`` charges a client that has quotas. ``tenant`` is the instance that the client belongs to;
    None for a client of the whole cluster.
    """

    api_version: int
    client_id: str
    peer: Peer
    is_forwarded: bool = False
    principal: Principal = ANONYMOUS
    software: ClientSoftware | None = None
    meter: RequestMeter | None = None
    tenant: TenantView | None = None

    def admit_mutations(self, clock: Clock) -> Callable[[str, int], None]:
        """Return what charges the partitions that a request creates or deletes (KIP-599).

        It is called with a topic and a number of partitions, and raises KafkaError if the client's quota is used up.
        """
        meter = self.meter
        if meter is None:
            return admit_all
        return lambda topic, partitions: meter.admit_mutation(topic, partitions, clock.seconds())


@dataclass(slots=True)
class Services:
    """The services that handlers call; built once by `kafkacompat.broker`.

    ``served`` holds the APIs that ApiVersions lists, ``features`` the feature levels. A listener that emulates an older release
    has its own, and names the release. ``cluster`` is None on a single node, ``authorizer`` where every client may do everything.
    ``enclosed`` answers the requests in Envelopes, on the listener that receives these. ``quotas`` are those of clients. ``telemetry``
    receives the metrics of clients, and ``requests`` are those of the broker's requests; None without a listener that shows them.
    ``instances`` are those of tenants, ``whitelists`` those of topics.
    """

    node_id: int
    clock: Clock
    config: BrokerConfig
    metadata: ImageHolder
    effective: EffectiveConfig
    controller: Administration
    replica_manager: ReplicaManager
    fetch_sessions: FetchSessions
    coordinators: Coordinators
    conversions: Conversions
    served: Mapping[int, Versions] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    emulated: Release | None = None
    cluster: ClusterRole | None = None
    enclosed: EnclosedRequests | None = None
    authorizer: Authorizer | None = None
    quotas: ClientQuotas = field(default_factory=ClientQuotas)
    telemetry: ClientTelemetry | None = None
    requests: RequestMetrics | None = None
    instances: Instances = field(default_factory=Instances)
    whitelists: TopicWhitelists = field(default_factory=TopicWhitelists)

    def require_cluster(self) -> ClusterRole:
        """Return the broker's part in the cluster, for handlers that a single node does not serve."""
        assert self.cluster is not None
        return self.cluster

    def require_telemetry(self) -> ClientTelemetry:
        """Return the receiver of clients' metrics, for handlers that are served only with one."""
        assert self.telemetry is not None
        return self.telemetry

    def is_anonymous(self, principal: Principal) -> bool:
        """Return whether a client has not authenticated itself; in an instance its user has the instance's prefix."""
        return principal.name == f"{self.instances.find_user_prefix(principal.name)}{ANONYMOUS.name}"

    def now_ms(self) -> int:
        """Return the milliseconds since the epoch, by the given clock."""
        return now_ms(self.clock)


@dataclass(slots=True)
class Pending(Generic[ResponseType_co]):
    """An answer that comes later.

    The connection starts its next request at once. If the answer is ``in_order``, because the next request must see its
    effects, the connection waits for the answer, or for ``settled`` if that fires earlier. When the client disconnects, an
    ``abandonable`` answer is cancelled; all others complete, as other requests depend on them.
    """

    response: Deferred[ResponseType_co]
    in_order: bool = False
    abandonable: bool = False
    settled: Deferred[None] | None = None

    def unwrap_if_ready(self) -> ResponseType_co | Pending[ResponseType_co]:
        """Return the answer itself if it is already there."""
        response = self.response
        if not response.called or response.paused or isinstance(response.result, Failure):
            return self
        return response.result  # type: ignore[return-value]

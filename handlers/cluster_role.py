"""A broker's part in a cluster, as far as handlers use it; `kafkacompat.cluster` implements it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.cluster.decisions.leader_balance import ElectionType
    from kafkacompat.cluster.decisions.situation import TopicPartition
    from kafkacompat.handlers import Handler
    from kafkacompat.handlers.context import Pending, RequestContext
    from kafkacompat.metadata.image import MetadataImage
    from kafkacompat.wire.apis.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
    from kafkacompat.wire.apis.alter_partition import AlterPartitionRequest, AlterPartitionResponse
    from kafkacompat.wire.apis.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
    from kafkacompat.wire.apis.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
    from kafkacompat.wire.apis.report_storage import ReportStorageRequest, ReportStorageResponse
    from kafkacompat.wire.apis.report_traffic import ReportTrafficRequest, ReportTrafficResponse
    from kafkacompat.wire.apis.stop_replica import StopReplicaRequest, StopReplicaResponse
    from kafkacompat.wire.apis.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
    from kafkacompat.wire.connection import IncomingRequest
    from kafkacompat.wire.errors import KafkaError
    from kafkacompat.wire.schema import Request, Response

    Outcomes = Mapping[TopicPartition, KafkaError | None]


class ControllerRequests(Protocol):
    """Sends requests to the controller."""

    @property
    def is_local(self) -> bool:
        """Whether this broker is the controller."""

    def send(self, request: Request, timeout_s: float) -> Deferred[Any]:
        """Send a request; fails with NoControllerError, NoBrokerError or RequestFailedError."""


class ControllerDecisions(Protocol):
    """The controller, on the broker that is it. The methods fail with KafkaError NOT_CONTROLLER when it resigns."""

    @property
    def image(self) -> MetadataImage:
        """The image that is stored, newer than that of any broker."""

    def elect_leaders(self, kind: ElectionType, wanted: Sequence[TopicPartition] | None) -> Deferred[Outcomes]:
        """Elect leaders; fires with None or an error for each partition."""

    def reassign_partitions(
        self, wanted: Mapping[TopicPartition, Sequence[int] | None], *, factor_may_change: bool = True
    ) -> Deferred[Outcomes]:
        """Start, replace or cancel (None) reassignments; fires with None or an error for each partition."""


class BrokerAnswers(Protocol):
    """The controller's answers to requests of brokers, with NOT_CONTROLLER on any other broker."""

    async def alter_partition(self, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse:
        """Change in-sync sets."""

    async def shut_down_broker(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        """Move the leaderships of a broker."""

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        """Allocate a block of producer ids."""

    async def report_storage(self, request: ReportStorageRequest) -> ReportStorageResponse:
        """Add up what instances store."""

    async def report_traffic(self, request: ReportTrafficRequest) -> ReportTrafficResponse:
        """Divide the traffic of instances."""


class ClusterRole(Protocol):
    """A broker's part in the cluster.

    ``forwarding`` sends Envelopes on a connection of its own: a forwarded request may wait for other brokers, and the responses
    of a connection keep their order.
    """

    @property
    def forwarding(self) -> ControllerRequests: ...

    @property
    def answers(self) -> BrokerAnswers: ...

    def require_active(self) -> ControllerDecisions:
        """Return the controller; raises KafkaError NOT_CONTROLLER on any other broker."""

    def wait_until_informed(self) -> Deferred[None]:
        """Fire when the controller has sent this broker metadata, or does not for long."""

    def apply_leader_and_isr(self, request: LeaderAndIsrRequest) -> Deferred[LeaderAndIsrResponse]:
        """Lead or follow partitions."""

    def stop_replicas(self, request: StopReplicaRequest) -> Deferred[StopReplicaResponse]:
        """Stop or delete replicas."""

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Take over brokers and partitions."""


class EnclosedRequests(Protocol):
    """Answers the requests in Envelopes; a `Dispatcher`. ``handlers`` are those of the APIs that may be forwarded."""

    @property
    def handlers(self) -> Mapping[int, Handler]: ...

    def dispatch(self, incoming: IncomingRequest, context: RequestContext) -> Response | Pending[Response] | None:
        """Return the response to a request, now or later."""

    def build_failure_response(self, incoming: IncomingRequest, problem: BaseException) -> Response:
        """Return the response that carries a failed request's error code; raises UnanswerableError."""

"""A broker's part in a cluster, played by a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, fail, succeed

from kafkacompat.cluster.decisions.situation import TopicPartition
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.wire.apis.allocate_producer_ids import AllocateProducerIdsResponse
from kafkacompat.wire.apis.alter_partition import AlterPartitionResponse
from kafkacompat.wire.apis.controlled_shutdown import ControlledShutdownResponse
from kafkacompat.wire.apis.leader_and_isr import LeaderAndIsrResponse
from kafkacompat.wire.apis.report_storage import ReportStorageResponse
from kafkacompat.wire.apis.report_traffic import ReportTrafficResponse
from kafkacompat.wire.apis.stop_replica import StopReplicaResponse
from kafkacompat.wire.apis.update_metadata import UpdateMetadataResponse
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.cluster.decisions.leader_balance import ElectionType
    from kafkacompat.wire.schema import Request

Outcomes = Mapping[TopicPartition, KafkaError | None]


class FakeController:
    """Elects and reassigns as ``outcomes`` says, and records the requests."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.outcomes: Deferred[Outcomes] = succeed({})
        self.asked: list[Any] = []

    def elect_leaders(self, kind: ElectionType, wanted: Sequence[TopicPartition] | None) -> Deferred[Outcomes]:
        self.asked.append((kind, wanted))
        return self.outcomes

    def reassign_partitions(
        self, wanted: Mapping[TopicPartition, Sequence[int] | None], *, factor_may_change: bool = True
    ) -> Deferred[Outcomes]:
        self.asked.append((dict(wanted), factor_may_change))
        return self.outcomes


class FakeLink:
    """The way to the controller: ``deliver`` answers requests, and ``sent`` records them."""

    def __init__(self, deliver: Callable[[Request], Deferred[Any]] | None = None) -> None:
        self.is_local = deliver is None
        self.deliver = deliver
        self.sent: list[tuple[Request, float]] = []

    def send(self, request: Request, timeout_s: float) -> Deferred[Any]:
        self.sent.append((request, timeout_s))
        return fail(AssertionError("this is the controller")) if self.deliver is None else self.deliver(request)


class FakeRole:
    """Is the controller while ``active`` is set; obeys every order."""

    def __init__(self, forwarding: FakeLink, active: FakeController | None = None) -> None:
        self.forwarding = forwarding
        self.active = active
        self.orders: list[Any] = []
        self.failure: KafkaError | None = None

    @property
    def answers(self) -> FakeRole:
        return self

    def require_active(self) -> FakeController:
        if self.active is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "another broker is the controller")
        return self.active

    def wait_until_informed(self) -> Deferred[None]:
        self.informed: Deferred[None] = Deferred()
        return self.informed

    def apply_leader_and_isr(self, request: Any) -> Deferred[LeaderAndIsrResponse]:
        return self._obey(request, LeaderAndIsrResponse(error_code=11))

    def stop_replicas(self, request: Any) -> Deferred[StopReplicaResponse]:
        return self._obey(request, StopReplicaResponse(error_code=11))

    def update_metadata(self, request: Any) -> UpdateMetadataResponse:
        self.orders.append(request)
        if self.failure is not None:
            raise self.failure
        return UpdateMetadataResponse(error_code=11)

    async def alter_partition(self, request: Any, version: int) -> AlterPartitionResponse:
        response: AlterPartitionResponse = await self._obey((request, version), AlterPartitionResponse(error_code=11))
        return response

    async def shut_down_broker(self, request: Any) -> ControlledShutdownResponse:
        response: ControlledShutdownResponse = await self._obey(request, ControlledShutdownResponse(error_code=11))
        return response

    async def allocate_producer_ids(self, request: Any) -> AllocateProducerIdsResponse:
        response: AllocateProducerIdsResponse = await self._obey(request, AllocateProducerIdsResponse(error_code=11))
        return response

    async def report_storage(self, request: Any) -> ReportStorageResponse:
        response: ReportStorageResponse = await self._obey(request, ReportStorageResponse(error_code=11))
        return response

    async def report_traffic(self, request: Any) -> ReportTrafficResponse:
        response: ReportTrafficResponse = await self._obey(request, ReportTrafficResponse(error_code=11))
        return response

    def _obey(self, order: Any, answer: Any) -> Deferred[Any]:
        self.orders.append(order)
        return succeed(answer) if self.failure is None else fail(self.failure)

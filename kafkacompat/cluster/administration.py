"""What handlers ask of the controller, on any broker of a cluster: done here if this broker is it, else sent to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from twisted.internet.defer import Deferred, fail, succeed

from kafkacompat.cluster.controller_link import NoBrokerError, NoControllerError
from kafkacompat.metadata.producer_ids import ProducerIds
from kafkacompat.metadata.topic_changes import BROKER_DEFAULT, AdmitPartitions, admit_all
from kafkacompat.wire.apis.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kafkacompat.wire.apis.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from random import Random

    from twisted.python.failure import Failure

    from kafkacompat.cluster.active_controller import ActiveController
    from kafkacompat.cluster.controller_link import ControllerLink
    from kafkacompat.metadata.changes import Outcome
    from kafkacompat.metadata.client_entities import Entity
    from kafkacompat.metadata.config_changes import ResourceChange
    from kafkacompat.metadata.draft import MetadataDraft
    from kafkacompat.metadata.image import ImageHolder, MetadataImage, TopicImage
    from kafkacompat.metadata.quota_changes import QuotaAlteration
    from kafkacompat.metadata.scram_changes import ScramChange
    from kafkacompat.metadata.topic_changes import NewPartitions, NewTopic
    from kafkacompat.security.acls.filters import AclFilter
    from kafkacompat.security.acls.model import Acl

TIMEOUT_S = 30.0

Result = TypeVar("Result")


class ClusterAdministration:
    """The controller of the cluster, as handlers of this broker see it.

    ``find_active`` returns the controller if this broker is it. Changes that only administrators make fail with NOT_CONTROLLER
    elsewhere: their requests are forwarded as a whole. Topics that are created automatically are requested by CreateTopics.
    """

    def __init__(
        self,
        node_id: int,
        broker_epoch: Callable[[], int],
        find_active: Callable[[], ActiveController | None],
        link: ControllerLink,
        metadata: ImageHolder,
        default_partition_count: Callable[[], int],
    ) -> None:
        self._default_partition_count = default_partition_count
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._find_active = find_active
        self._link = link
        self._metadata = metadata
        self.producer_ids = ProducerIds(self._allocate_producer_ids)

    @property
    def committed(self) -> MetadataImage:
        """The newest image that this broker knows: on the controller the one that ZooKeeper holds."""
        active = self._find_active()
        return self._metadata.image if active is None else active.image

    def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False, admit: AdmitPartitions = admit_all
    ) -> Deferred[list[TopicImage | KafkaError]]:
        """See MetadataChanges."""
        active = self._find_active()
        if active is not None:
            return active.changes.create_topics(wanted, validate_only=validate_only, admit=admit)
        if self._link.is_local:
            # This broker is elected and has not begun, or has just given up: nobody can do it at the moment.
            return _refuse()
        refused = self._charge(wanted, admit)
        request = CreateTopicsRequest(
            topics=[_describe_topic(topic) for topic in wanted if topic.name not in refused],
            timeout_ms=int(TIMEOUT_S * 1000),
            validate_only=validate_only,
        )
        if not request.topics:
            return succeed([refused[topic.name] for topic in wanted])
        return self._link.send(request, TIMEOUT_S).addCallbacks(
            self._read_created, _raise_as_kafka_error, callbackArgs=(wanted, refused)
        )

    def _charge(self, wanted: Sequence[NewTopic], admit: AdmitPartitions) -> dict[str, KafkaError]:
        """Charge the client here, as the controller does not learn of it; return the topics that its quota forbids."""
        refused: dict[str, KafkaError] = {}
        for topic in wanted:
            count = topic.partition_count
            try:
                admit(topic.name, self._default_partition_count() if count == BROKER_DEFAULT else count)
            except KafkaError as problem:
                refused[topic.name] = problem.with_traceback(None)
        return refused

    def _read_created(
        self, response: CreateTopicsResponse, wanted: Sequence[NewTopic], refused: Mapping[str, KafkaError]
    ) -> list[TopicImage | KafkaError]:
        results = {result.name: result for result in response.topics}
        return [refused.get(topic.name) or self._find_created(topic.name, results.get(topic.name)) for topic in wanted]

    def _find_created(self, name: str, result: Any) -> TopicImage | KafkaError:
        if result is not None and result.error_code:
            return KafkaError(ErrorCode(result.error_code), result.error_message or "")
        topic = self._metadata.image.topics.get(name)
        if topic is None:
            return KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"this broker has not learned of topic {name} yet")
        return topic

    def delete_topics(
        self, topic_ids: Sequence[bytes], *, admit: AdmitPartitions = admit_all
    ) -> Deferred[list[Outcome]]:
        """See ActiveController."""
        active = self._find_active()
        return _refuse() if active is None else active.delete_topics(topic_ids, admit=admit)

    def create_partitions(
        self, wanted: Sequence[NewPartitions], *, validate_only: bool = False, admit: AdmitPartitions = admit_all
    ) -> Deferred[list[Outcome]]:
        """See MetadataChanges."""
        active = self._find_active()
        if active is None:
            return _refuse()
        return active.changes.create_partitions(wanted, validate_only=validate_only, admit=admit)

    def alter_configs(
        self, wanted: Sequence[ResourceChange], *, validate_only: bool = False
    ) -> Deferred[list[Outcome]]:
        """See MetadataChanges."""
        active = self._find_active()
        return _refuse() if active is None else active.changes.alter_configs(wanted, validate_only=validate_only)

    def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> Deferred[dict[Entity, Outcome]]:
        """See MetadataChanges."""
        active = self._find_active()
        if active is None:
            return _refuse()
        return active.changes.alter_client_quotas(alterations, validate_only=validate_only)

    def alter_scram_credentials(self, changes: Sequence[ScramChange]) -> Deferred[dict[str, Outcome]]:
        """See MetadataChanges."""
        active = self._find_active()
        return _refuse() if active is None else active.changes.alter_scram_credentials(changes)

    def change_tokens(self, plan: Callable[[MetadataDraft, Random], Result]) -> Deferred[Result]:
        """See MetadataChanges."""
        active = self._find_active()
        return _refuse() if active is None else active.changes.change_tokens(plan)

    def create_acls(self, acls: Sequence[Acl]) -> Deferred[None]:
        """See MetadataChanges."""
        active = self._find_active()
        return _refuse() if active is None else active.changes.create_acls(acls)

    def delete_acls(self, filters: Sequence[AclFilter]) -> Deferred[list[list[Acl] | KafkaError]]:
        """See MetadataChanges."""
        active = self._find_active()
        return _refuse() if active is None else active.changes.delete_acls(filters)

    def _allocate_producer_ids(self) -> Deferred[range]:
        request = AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=self._broker_epoch())
        return self._link.send(request, TIMEOUT_S).addCallbacks(_read_block, _raise_as_kafka_error)


def _refuse() -> Deferred[Any]:
    return fail(KafkaError(ErrorCode.NOT_CONTROLLER, "this broker is not the controller at the moment"))


def _raise_as_kafka_error(failure: Failure) -> NoReturn:
    """Turn a failure to reach the controller into an error that clients repeat their request after."""
    if isinstance(failure.value, KafkaError):
        failure.raiseException()
    is_known = isinstance(failure.value, (NoControllerError, NoBrokerError))
    code = ErrorCode.NOT_CONTROLLER if is_known else ErrorCode.REQUEST_TIMED_OUT
    raise KafkaError(code, f"the controller cannot be reached: {failure.value}") from None


def _read_block(response: AllocateProducerIdsResponse) -> range:
    if response.error_code:
        raise KafkaError(ErrorCode(response.error_code), "the controller allocates no producer ids")
    return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)


def _describe_topic(topic: NewTopic) -> CreatableTopic:
    configs: Mapping[str, str | None] = topic.configs
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(nodes))
            for index, nodes in topic.assignments
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )

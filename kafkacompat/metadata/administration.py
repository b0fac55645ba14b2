"""What handlers and coordinators ask of the controller, whether it is in this process or another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from kafkacompat.metadata.topic_changes import AdmitPartitions, admit_all

if TYPE_CHECKING:
    from random import Random

    from twisted.internet.defer import Deferred

    from kafkacompat.metadata.changes import Outcome
    from kafkacompat.metadata.client_entities import Entity
    from kafkacompat.metadata.config_changes import ResourceChange
    from kafkacompat.metadata.draft import MetadataDraft
    from kafkacompat.metadata.image import MetadataImage, TopicImage
    from kafkacompat.metadata.producer_ids import ProducerIds
    from kafkacompat.metadata.quota_changes import QuotaAlteration
    from kafkacompat.metadata.scram_changes import ScramChange
    from kafkacompat.metadata.topic_changes import NewPartitions, NewTopic
    from kafkacompat.security.acls.filters import AclFilter
    from kafkacompat.security.acls.model import Acl
    from kafkacompat.wire.errors import KafkaError

Result = TypeVar("Result")


class Administration(Protocol):
    """Changes of the cluster's metadata; see `MetadataChanges` for the methods."""

    producer_ids: ProducerIds

    @property
    def committed(self) -> MetadataImage:
        """The newest image that is known here."""

    def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False, admit: AdmitPartitions = admit_all
    ) -> Deferred[list[TopicImage | KafkaError]]:
        """Create topics."""

    def delete_topics(
        self, topic_ids: Sequence[bytes], *, admit: AdmitPartitions = admit_all
    ) -> Deferred[list[Outcome]]:
        """Delete topics."""

    def create_partitions(
        self, wanted: Sequence[NewPartitions], *, validate_only: bool = False, admit: AdmitPartitions = admit_all
    ) -> Deferred[list[Outcome]]:
        """Add partitions to topics."""

    def alter_configs(
        self, wanted: Sequence[ResourceChange], *, validate_only: bool = False
    ) -> Deferred[list[Outcome]]:
        """Change the configurations of resources."""

    def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> Deferred[dict[Entity, Outcome]]:
        """Change the quotas of clients."""

    def alter_scram_credentials(self, changes: Sequence[ScramChange]) -> Deferred[dict[str, Outcome]]:
        """Change the SCRAM credentials of users."""

    def change_tokens(self, plan: Callable[[MetadataDraft, Random], Result]) -> Deferred[Result]:
        """Change delegation tokens."""

    def create_acls(self, acls: Sequence[Acl]) -> Deferred[None]:
        """Add access rules."""

    def delete_acls(self, filters: Sequence[AclFilter]) -> Deferred[list[list[Acl] | KafkaError]]:
        """Remove access rules."""

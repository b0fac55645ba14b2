"""The changes that administrators and clients make: planned on a draft, committed, and applied before the answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any, ParamSpec, TypeAlias, TypeVar

from twisted.internet.defer import Deferred, DeferredLock

from kafkacompat.config import BrokerConfig
from kafkacompat.metadata.acl_changes import create_acls, delete_acls
from kafkacompat.metadata.client_entities import Entity
from kafkacompat.metadata.config_changes import ResourceChange, alter_configs
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.effective import EffectiveConfig
from kafkacompat.metadata.image import MetadataImage, TopicImage
from kafkacompat.metadata.ledger import MetadataLedger
from kafkacompat.metadata.quota_changes import QuotaAlteration, alter_client_quotas
from kafkacompat.metadata.scram_changes import ScramChange, alter_scram_credentials
from kafkacompat.metadata.topic_changes import (
    AdmitPartitions,
    ListHosts,
    NewPartitions,
    NewTopic,
    TopicPlanner,
    admit_all,
    allow_all_brokers,
    delete_topic,
)
from kafkacompat.security.acls.filters import AclFilter
from kafkacompat.security.acls.model import Acl
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

MAX_TOPICS_NAMED = 100
"""Most topics that one log line names."""

Result = TypeVar("Result")
Item = TypeVar("Item")
Arguments = ParamSpec("Arguments")
Outcome: TypeAlias = "KafkaError | None"
LimitHosts: TypeAlias = "Callable[[MetadataDraft, BrokerConfig], ListHosts]"
"""Returns the function that limits the brokers of topics, for one draft and the configuration in effect."""
ApplyImage: TypeAlias = "Callable[[MetadataImage], Coroutine[Deferred[Any], Any, Deferred[None] | None]]"


class MetadataChanges:
    """Makes one change at a time, under *lock*.

    Each method fails with KafkaError; KAFKA_STORAGE_ERROR is a failure of the store. It fires when *apply* has brought the
    committed image to the replicas. What takes long of that, such as answers of other brokers, *apply* returns as a Deferred: the
    next change does not wait for it. *admit* charges a client for partitions (KIP-599). *is_deleting* returns whether a topic is to be deleted, though the image still has it.
    *limit_hosts* limits the brokers that new partitions are placed on.
    """

    def __init__(
        self,
        ledger: MetadataLedger,
        apply: ApplyImage,
        lock: DeferredLock,
        static_config: BrokerConfig,
        effective: EffectiveConfig,
        rng: Random,
        is_deleting: Callable[[str], bool] = lambda topic: False,
        limit_hosts: LimitHosts = lambda draft, config: allow_all_brokers,
    ) -> None:
        self._limit_hosts = limit_hosts
        self._is_deleting = is_deleting
        self._ledger = ledger
        self._apply = apply
        self._lock = lock
        self._static_config = static_config
        self._effective = effective
        self._rng = rng

    def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False, admit: AdmitPartitions = admit_all
    ) -> Deferred[list[TopicImage | KafkaError]]:
        """Create topics; fires with each topic's image or error when their leaders accept writes."""

        def plan(draft: MetadataDraft) -> list[TopicImage | KafkaError]:
            changes = self._make_planner(draft, admit)
            changes.check_size(wanted)
            return [_change_or_error(changes.create_topic, draft, topic) for topic in wanted]

        creating = self._make_change(plan, validate_only)
        return creating if validate_only else creating.addCallback(_log_created)

    def _make_planner(self, draft: MetadataDraft, admit: AdmitPartitions) -> TopicPlanner:
        config = self._effective.config
        return TopicPlanner(
            config,
            self._rng,
            admit=admit,
            find_instance=self._effective.find_instance,
            list_hosts=self._limit_hosts(draft, config),
        )

    def delete_topics(
        self, topic_ids: Sequence[bytes], *, admit: AdmitPartitions = admit_all
    ) -> Deferred[list[Outcome]]:
        """Delete topics; fires with None or an error for each, when topics of their names may be created."""

        def plan(draft: MetadataDraft) -> list[Outcome]:
            return _change_each(topic_ids, lambda topic_id: delete_topic(draft, topic_id, admit))

        return self._make_change(plan, False)

    def create_partitions(
        self, wanted: Sequence[NewPartitions], *, validate_only: bool = False, admit: AdmitPartitions = admit_all
    ) -> Deferred[list[Outcome]]:
        """Add partitions to topics; fires with None or an error for each, when the new partitions accept writes."""

        def plan(draft: MetadataDraft) -> list[Outcome]:
            changes = self._make_planner(draft, admit)

            def add(more: NewPartitions) -> None:
                if self._is_deleting(more.name):
                    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic '{more.name}' is being deleted")
                changes.add_partitions(draft, more)

            return _change_each(wanted, add)

        return self._make_change(plan, validate_only)

    def alter_configs(
        self, wanted: Sequence[ResourceChange], *, validate_only: bool = False
    ) -> Deferred[list[Outcome]]:
        """Change the configurations of resources; fires with None or an error for each."""

        def plan(draft: MetadataDraft) -> list[Outcome]:
            return _change_each(wanted, lambda change: self._alter_config(draft, change))

        return self._make_change(plan, validate_only)

    def _alter_config(self, draft: MetadataDraft, change: ResourceChange) -> None:
        alter_configs(draft, self._static_config, change, self._effective.find_instance)

    def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> Deferred[dict[Entity, Outcome]]:
        """Change the quotas of clients; fires with None or an error for each entity."""
        return self._make_change(lambda draft: alter_client_quotas(draft, alterations), validate_only)

    def alter_scram_credentials(self, changes: Sequence[ScramChange]) -> Deferred[dict[str, Outcome]]:
        """Change the SCRAM credentials of users; fires with None or an error for each user."""
        return self._make_change(lambda draft: alter_scram_credentials(draft, changes), False)

    def change_tokens(self, plan: Callable[[MetadataDraft, Random], Result]) -> Deferred[Result]:
        """Change delegation tokens as *plan* does on a draft, see `token_changes`; fires with its result."""
        return self._make_change(lambda draft: plan(draft, self._rng), False)

    def create_acls(self, acls: Sequence[Acl]) -> Deferred[None]:
        """Add access rules; those that exist already stay."""
        return self._make_change(lambda draft: create_acls(draft, acls), False)

    def delete_acls(self, filters: Sequence[AclFilter]) -> Deferred[list[list[Acl] | KafkaError]]:
        """Remove access rules; fires with the removed ones, or an error, for each filter."""
        return self._make_change(lambda draft: delete_acls(draft, filters), False)

    def _make_change(self, plan: Callable[[MetadataDraft], Result], validate_only: bool) -> Deferred[Result]:
        async def commit() -> tuple[Result, Deferred[None] | None]:
            if validate_only:
                return plan(MetadataDraft(self._ledger.image)), None
            result = await self._ledger.commit(plan)
            return result, await self._apply(self._ledger.image)

        async def change() -> Result:
            result, applied = await self._lock.run(lambda: Deferred.fromCoroutine(commit()))
            if applied is not None:
                await applied
            return result

        return Deferred.fromCoroutine(change())


def _log_created(results: list[TopicImage | KafkaError]) -> list[TopicImage | KafkaError]:
    """Log one line for all topics of a request."""
    created = [topic for topic in results if isinstance(topic, TopicImage)]
    if len(created) == 1:
        log.info("Created topic %s: %s", created[0].name, _count_partitions(created[0]))
    elif created:
        named = ", ".join(f"{topic.name} ({_count_partitions(topic)})" for topic in created[:MAX_TOPICS_NAMED])
        log.info("Created %d topics: %s%s", len(created), named, ", ..." if len(created) > MAX_TOPICS_NAMED else "")
    return results


def _count_partitions(topic: TopicImage) -> str:
    return "1 partition" if len(topic.partitions) == 1 else f"{len(topic.partitions)} partitions"


def _change_each(items: Sequence[Item], change: Callable[[Item], None]) -> list[Outcome]:
    """Make one change for each item; a failure leaves the other items alone."""
    return [_change_or_error(change, item) for item in items]


def _change_or_error(
    change: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result | KafkaError:
    try:
        return change(*args, **kwargs)
    except KafkaError as problem:
        # The traceback refers to every frame on the way: the response that holds the error would wait for the garbage collector.
        return problem.with_traceback(None)

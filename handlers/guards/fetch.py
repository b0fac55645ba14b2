"""The guard of Fetch: it is asked about each partition that is read, as a session has more partitions than a request names."""

from __future__ import annotations

from collections.abc import Callable

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.guards.access import Access, Rights
from kafkacompat.handlers.guards.table import FETCH_CHECKS
from kafkacompat.partitions.fetch_sessions import WantedPartition
from kafkacompat.partitions.partition import Partition
from kafkacompat.security.acls.authorizer import Authorizer
from kafkacompat.security.acls.model import CLUSTER_NAME
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.headers import FETCH_KEY

Find = Callable[[WantedPartition], Partition]


def may_follow(authorizer: Authorizer, context: RequestContext) -> bool:
    """Return whether a client may fetch as a follower; the decision is noted when it reads a partition."""
    operation, kind = FETCH_CHECKS[1]
    return authorizer.decide(context.principal, context.peer.host, operation, kind, CLUSTER_NAME).allowed


def guard_find(find: Find, is_follower: bool, authorizer: Rights, context: RequestContext, services: Services) -> Find:
    """Return a *find* that fails with TOPIC_AUTHORIZATION_FAILED for what the client may not read.

    A topic is asked about once, and again when other rules are in effect: a fetch that waits while a right is taken away ends.
    """
    access = Access(authorizer, FETCH_KEY, context, services)
    read_topic, act_for_cluster = FETCH_CHECKS
    known: dict[str, bool] = {}
    table: object = None

    def may_read(name: str) -> bool:
        if is_follower:
            return access.may(act_for_cluster.operation, act_for_cluster.kind, CLUSTER_NAME)
        return access.may(read_topic.operation, read_topic.kind, name)

    def find_readable(wanted: WantedPartition) -> Partition:
        nonlocal table
        if authorizer.table is not table:
            table = authorizer.table
            known.clear()
        name = access.find_topic_name(wanted.topic, [wanted.partition])
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
        if name not in known:
            known[name] = may_read(name)
        if not known[name]:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "the topic may not be read")
        return find(wanted)

    return find_readable

"""The whitelists of topics as rights: Produce, ListOffsets, AddPartitionsToTxn and Fetch are refused as for want of an ACL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.fetch import is_replica
from kafkacompat.handlers.guards import topics
from kafkacompat.handlers.guards.access import Access, Guard, Handle
from kafkacompat.handlers.guards.table import TABLE
from kafkacompat.security.acls.authorizer import AttemptObserver
from kafkacompat.security.acls.decisions import AccessDecision
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from kafkacompat.security.principals import Principal
from kafkacompat.tenancy.whitelists import TopicWhitelists

_ALLOWED, _REFUSED = AccessDecision(True, "Whitelist"), AccessDecision(False, "Whitelist")
_ADD_PARTITIONS, _LIST_OFFSETS, _PRODUCE = 24, 2, 0


class NetworkRights:
    """Lets a client do everything but produce to topics, and consume from topics, whose whitelists lack its address.

    See `Authorizer` for the members.
    """

    notes_allowed = False
    observer: AttemptObserver | None = None

    def __init__(self, whitelists: TopicWhitelists) -> None:
        self._whitelists = whitelists

    @property
    def table(self) -> object:
        """What is another object once other rules are in effect."""
        return self._whitelists.state

    def decide(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType, name: str
    ) -> AccessDecision:
        """Decide by the network of a client."""
        if kind != AclResourceType.TOPIC:
            return _ALLOWED
        produces = operation == AclOperation.WRITE
        may = self._whitelists.may_produce if produces else self._whitelists.may_consume
        return _ALLOWED if may(name, host) else _REFUSED

    def decide_on_any(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType
    ) -> AccessDecision:
        """Allow what concerns no single topic."""
        return _ALLOWED


def _guard_offsets(request: Any, access: Access, handle: Handle) -> Any:
    """Let followers, which reach the listener of the brokers, ask for offsets."""
    if request.replica_id >= 0 and is_replica(access.context, access.services):
        return handle(request)
    return TABLE[_LIST_OFFSETS].guard(request, access, handle)


_GUARDS: Mapping[int, Guard] = {
    _PRODUCE: topics.guard_produce,
    _LIST_OFFSETS: _guard_offsets,
    _ADD_PARTITIONS: topics.guard_transaction_partitions,
}


def guard_by_network(api_key: int, handle: Callable[..., Any], services: Services) -> Callable[..., Any]:
    """Return the handler of an API with the check of whitelists, if the API has one. Fetch checks them by itself."""
    guard = _GUARDS.get(api_key)
    if guard is None:
        return handle
    rights = NetworkRights(services.whitelists)

    def answer(request: Any, context: RequestContext, services: Services) -> Any:
        access = Access(rights, api_key, context, services)
        return guard(request, access, lambda rest: handle(rest, context, services))

    return answer

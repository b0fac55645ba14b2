"""One request's client, and what it may do: what all guards are built from."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from kafkacompat.handlers.authorized_operations import list_bits
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.guards.rights import AccessCheck
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.security.acls.authorizer import Attempt, AttemptObserver
from kafkacompat.security.acls.model import CLUSTER_NAME, AclOperation, AclResourceType
from kafkacompat.timers import yield_in_turns
from kafkacompat.wire import entities
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.errors import KafkaError

if TYPE_CHECKING:
    from kafkacompat.metadata.image import MetadataImage
    from kafkacompat.security.acls.decisions import AccessDecision
    from kafkacompat.security.principals import Principal

Handle = Callable[[Any], Any]
"""Answers a request without any check."""
Guard = Callable[[Any, "Access", Handle], Any]
"""Answers a request, or the part of it that its client may make."""


class Rights(Protocol):
    """Decides what clients may do; see `Authorizer`, which decides by ACLs."""

    notes_allowed: bool
    observer: AttemptObserver | None

    @property
    def table(self) -> object: ...

    def decide(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType, name: str
    ) -> AccessDecision: ...

    def decide_on_any(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType
    ) -> AccessDecision: ...


class Access:
    """What the client of one request may do. What it is refused, and is not merely left out, is noted."""

    __slots__ = ("_api_key", "_authorizer", "_host", "context", "services")

    def __init__(self, authorizer: Rights, api_key: int, context: RequestContext, services: Services) -> None:
        self._authorizer = authorizer
        self._api_key = api_key
        self._host = context.peer.host
        self.context = context
        self.services = services

    @property
    def version(self) -> int:
        """The version of the request."""
        return self.context.api_version

    @property
    def image(self) -> MetadataImage:
        """The metadata that handlers read."""
        return self.services.metadata.image

    def find_topic_name(self, topic: str | bytes, indexes: Iterable[int]) -> str | None:
        """Return the name of a topic that is given by its name or its id; None for an unknown id.

        A partition may be open before the metadata has its topic's id, and for a while after it has lost it.
        """
        if isinstance(topic, str):
            return topic
        known = self.image.topics_by_id.get(topic)
        if known is not None:
            return known.name
        opened = (self.services.replica_manager.find_name(topic, index) for index in indexes)
        return next(filter(None, opened), None)

    def may(
        self, operation: AclOperation, kind: AclResourceType, name: str, *, is_noted: bool = True, count: int = 1
    ) -> bool:
        """Return whether the client may do something with a resource."""
        authorizer = self._authorizer
        decision = authorizer.decide(self.context.principal, self._host, operation, kind, name)
        if authorizer.notes_allowed if decision.allowed else is_noted:
            self._note(operation, kind, name, count, decision)
        return decision.allowed

    def may_on_any(self, operation: AclOperation, kind: AclResourceType) -> bool:
        """Return whether the client may do something with at least one resource of a type."""
        return self._authorizer.decide_on_any(self.context.principal, self._host, operation, kind).allowed

    def may_on_cluster(self, operation: AclOperation, *, is_noted: bool = True) -> bool:
        """Return whether the client may do something with the cluster."""
        return self.may(operation, AclResourceType.CLUSTER, self.cluster_name, is_noted=is_noted)

    @property
    def cluster_name(self) -> str:
        """The name of the client's cluster: an instance is one of its own, with its own access rules."""
        context, instances = self.context, self.services.instances
        tenant = context.tenant
        if tenant is None and context.is_forwarded and instances:
            tenant = instances.find_owner(entities.USER, context.principal.name)
        return CLUSTER_NAME if tenant is None else tenant.cluster_resource

    def _note(
        self, operation: AclOperation, kind: AclResourceType, name: str, count: int, decision: AccessDecision
    ) -> None:
        observer, context = self._authorizer.observer, self.context
        if observer is None:
            return
        peer = context.peer
        api = find_api(self._api_key).request.__name__.removesuffix("Request")
        attempt = Attempt(context.principal, peer.host, peer.listener_name, api, operation, kind, name, count, decision)
        (observer.note_allowed if decision.allowed else observer.note_denied)(attempt)

    def select(
        self, operation: AclOperation, kind: AclResourceType, names: Iterable[str], *, is_noted: bool = True
    ) -> set[str]:
        """Return the names of the resources with which the client may do something."""
        counts: dict[str, int] = {}
        for name in names:
            counts[name] = counts.get(name, 0) + 1
        return {
            name for name, count in counts.items() if self.may(operation, kind, name, is_noted=is_noted, count=count)
        }

    async def select_in_turns(
        self, operation: AclOperation, kind: AclResourceType, names: Iterable[str], *, is_noted: bool = True
    ) -> set[str]:
        """Return the same for names that may be many; other requests have their turns in between."""
        return {
            name
            async for name in yield_in_turns(self.services.clock, dict.fromkeys(names))
            if self.may(operation, kind, name, is_noted=is_noted)
        }

    def require(self, check: AccessCheck, name: str | None = None) -> None:
        """Raise KafkaError unless the client has a right on a resource, by default on the cluster."""
        if not self.may(check.operation, check.kind, self.cluster_name if name is None else name):
            raise KafkaError(check.error, f"{check.operation.name} on {check.kind.name} is not allowed")

    def list_operations(self, kind: AclResourceType, name: str | None = None) -> int:
        """Return the operations that the client may do with a resource, by default with the cluster, one bit each."""
        principal, host, decide = self.context.principal, self._host, self._authorizer.decide
        name = self.cluster_name if name is None else name
        return list_bits(kind, lambda operation: decide(principal, host, operation, kind, name).allowed)


def in_turns(guard: Callable[[Any, Access, Handle], Coroutine[Any, Any, Any]]) -> Guard:
    """Return the guard that a coroutine is. It is for requests with many items, or with many in their response."""
    return lambda request, access, handle: answer_in_order(guard(request, access, handle))


async def wait_for(answer: Any) -> Any:
    """Return the response of a handler, now or later."""
    return await answer.response if isinstance(answer, Pending) else answer


def change_response(answer: Any, change: Callable[[Any], Any]) -> Any:
    """Return an answer whose response, now or later, is changed."""
    if isinstance(answer, Pending):
        answer.response.addCallback(change)
        return answer
    return change(answer)

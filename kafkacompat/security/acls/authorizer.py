"""The authorizer: answers whether a client may do something, and notes what it has refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from kafkacompat.security.acls.decisions import (
    ALLOWED_BY_DEFAULT,
    DENIED_BY_DEFAULT,
    SUPER_USER,
    AccessDecision,
    combine,
    decide,
    is_allowed_on_any,
    make_client,
)
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from kafkacompat.security.acls.table import NO_ACLS, AclTable
from kafkacompat.security.principals import Principal, parse_principal

MOST_DECISIONS = 20_000
"""Decisions that are remembered; beyond that all are forgotten."""
LONGEST_NAME = 250
"""Decisions about resources with longer names are not remembered: a client chooses the names."""


class Attempt(NamedTuple):
    """A client's request for one operation on one resource, for the logs."""

    principal: Principal
    host: str
    listener: str
    api: str
    operation: AclOperation
    resource_type: AclResourceType
    resource: str
    references: int
    decision: AccessDecision


class AttemptObserver(Protocol):
    """Receives what was allowed and refused."""

    def note_denied(self, attempt: Attempt) -> None:
        """Note a refusal."""

    def note_allowed(self, attempt: Attempt) -> None:
        """Note a permission."""


class AddedRights(Protocol):
    """What the instances of tenants add to the rules."""

    def is_super_user(self, principal: str, kind: AclResourceType, name: str | None) -> bool:
        """Return whether a principal may do everything with a resource, or with some resource if *name* is None."""

    def find_alias(self, kind: AclResourceType, name: str) -> str | None:
        """Return the second name of a resource that rules may use; None for a resource with one name."""

    def find_prefix(self, principal: str) -> str:
        """Return the beginning of the names of all resources that a principal can reach; "" for all resources."""


class Authorizer:
    """Decides by the rules that *find_table* returns, and remembers decisions until there are other rules, or until `forget`.

    *super_users* may do everything. With *allows_by_default* so may everybody where a resource has no rule at all.
    """

    def __init__(
        self,
        find_table: Callable[[], AclTable],
        super_users: Iterable[Principal] = (),
        *,
        allows_by_default: bool = False,
        most_decisions: int = MOST_DECISIONS,
    ) -> None:
        self.observer: AttemptObserver | None = None
        self.notes_allowed = False
        self.instances: AddedRights | None = None
        self._find_table = find_table
        self._super_users = frozenset(map(str, super_users))
        self._default = ALLOWED_BY_DEFAULT if allows_by_default else DENIED_BY_DEFAULT
        self._most_decisions = most_decisions
        self._table = NO_ACLS
        self._decisions: dict[tuple[Principal, str, AclOperation, AclResourceType, str | None], AccessDecision] = {}

    @property
    def table(self) -> AclTable:
        """The rules in effect."""
        return self._find_table()

    def decide(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType, name: str
    ) -> AccessDecision:
        """Decide whether a client may do something with a resource."""
        if self._find_table() is not self._table:
            self.forget()
        key = (principal, host, operation, kind, name)
        decision = self._decisions.get(key)
        return self._remember(key, self._decide(*key)) if decision is None else decision

    def decide_on_any(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType
    ) -> AccessDecision:
        """Decide whether a client may do something with at least one resource of a type."""
        if self._find_table() is not self._table:
            self.forget()
        key = (principal, host, operation, kind, None)
        decision = self._decisions.get(key)
        return self._remember(key, self._decide_on_any(*key[:4])) if decision is None else decision

    def forget(self) -> None:
        """Decide everything anew."""
        self._table = self._find_table()
        self._decisions.clear()

    def _remember(
        self, key: tuple[Principal, str, AclOperation, AclResourceType, str | None], decision: AccessDecision
    ) -> AccessDecision:
        if len(key[-1] or "") > LONGEST_NAME:
            return decision
        if len(self._decisions) >= self._most_decisions:
            self._decisions.clear()
        self._decisions[key] = decision
        return decision

    def _decide(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType, name: str
    ) -> AccessDecision:
        text, instances = str(principal), self.instances
        if text in self._super_users or (instances is not None and instances.is_super_user(text, kind, name)):
            return SUPER_USER
        client = make_client(text, host)
        decision = decide(self._table, client, operation, kind, name, self._default)
        alias = None if instances is None else instances.find_alias(kind, name)
        if alias is None:
            return decision
        return combine(decision, decide(self._table, client, operation, kind, alias, self._default))

    def _decide_on_any(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType
    ) -> AccessDecision:
        text, instances = str(principal), self.instances
        prefix = "" if instances is None else instances.find_prefix(text)
        if prefix and instances is not None and instances.is_super_user(text, kind, None):
            return SUPER_USER
        # A name that nobody has given: super users, and the default where there are no rules, count first.
        decision = self._decide(principal, host, operation, kind, f"{prefix}hardcode")
        if decision.allowed:
            return decision
        allowed = is_allowed_on_any(self._table, make_client(text, host), operation, kind, prefix)
        return AccessDecision(allowed, "AnyResource" if allowed else "DefaultDeny")


def parse_super_users(text: str) -> list[Principal]:
    """Parse super.users, principals separated by semicolons; raises ValueError."""
    return [parse_principal(name.strip()) for name in text.split(";") if name.strip()]


def describe_attempt(attempt: Attempt) -> str:
    """Return the line that Kafka's authorizer logs."""
    verdict = "Allowed" if attempt.decision.allowed else "Denied"
    resource = f"{attempt.resource_type.word}:LITERAL:{attempt.resource}"
    return (
        f"Principal = {attempt.principal} is {verdict} operation = {attempt.operation.name} from host = {attempt.host}"
        f" on resource = {resource} for request = {attempt.api} with resourceRefCount = {attempt.references}"
        f" based on rule {attempt.decision.describe()}"
    )

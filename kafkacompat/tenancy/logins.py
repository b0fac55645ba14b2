"""The users who may log in on the connections of instances, and on the brokers' own listeners once there are instances."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkacompat.security.sasl.mechanism import LoginScope, SaslError
from kafkacompat.wire import entities
from kafkacompat.wire.errors import KafkaError

if TYPE_CHECKING:
    from kafkacompat.tenancy.registry import Instances
    from kafkacompat.tenancy.routes import Routes
    from kafkacompat.tenancy.tenant_view import TenantView


class InstanceLogins(LoginScope):
    """The users of one instance: a login ``alice`` is the brokers' user ``shop.alice``."""

    def __init__(self, view: TenantView, instances: Instances) -> None:
        self._view = view
        self._instances = instances

    def find_user(self, login: str) -> str:
        """See LoginScope.find_user."""
        try:
            user: str = self._view.names.to_physical[entities.USER][login]
        except KafkaError as problem:
            raise SaslError(f"the user cannot log in: {problem}") from None
        return user

    def find_subject(self, subject: str) -> str:
        """See LoginScope.find_subject. A subject that is a user of an instance already counts in that one alone.

        Others are users of the instance only if it says so: tenants may share an identity provider.
        """
        if self.owns(subject):
            return subject
        is_foreign = self._instances.find_owner(entities.USER, subject) is not None
        if is_foreign or self._view.instance.value("subjects.without.prefix") is False:
            raise SaslError(f"the subject {subject} is not a user of this address")
        return self.find_user(subject)

    def owns(self, user: str) -> bool:
        """See LoginScope.owns."""
        owner = self._instances.find_owner(entities.USER, user)
        return owner is not None and owner.name == self._view.name

    def show(self, user: str) -> str:
        """See LoginScope.show."""
        return str(self._view.names.to_client[entities.USER][user]) if self.owns(user) else user


class BrokerLogins(LoginScope):
    """The users who may log in on the brokers' own listeners: the operator's, and those of ``sasl.users``."""

    def __init__(self, instances: Instances, find_routes: Callable[[], Routes]) -> None:
        self._instances = instances
        self._find_routes = find_routes

    def owns(self, user: str) -> bool:
        """See LoginScope.owns."""
        owner = self._instances.find_owner(entities.USER, user)
        return owner is None or self._find_routes().leads_by_user(owner.name, user)

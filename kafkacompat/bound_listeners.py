"""The listeners of a broker: bound at its start, and again when the properties change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from twisted.internet.defer import gatherResults

from kafkacompat.config import ConfigError
from kafkacompat.config.listeners import find_settings_name
from kafkacompat.server.emulation import emulate_release
from kafkacompat.server.listener import KafkaServer, ListenError

if TYPE_CHECKING:
    from random import Random

    from kafkacompat.config import Listener
    from kafkacompat.handlers import Handler
    from kafkacompat.handlers.context import Services
    from kafkacompat.instance_listeners import InstanceListeners
    from kafkacompat.security.sasl.jwks import Fetch
    from kafkacompat.security.tls.listeners import TlsListener
    from kafkacompat.server.authentication import Authentication
    from kafkacompat.server.dispatcher import Dispatcher
    from kafkacompat.server.sasl_gate import SaslGate
    from kafkacompat.server.tls import BrokerTls

log = logging.getLogger(__name__)


class BoundListeners:
    """Binds listeners to a server, each with its TLS, its authentication and the APIs that it serves.

    *inter_broker_name* is the listener between the brokers of a cluster. ``addresses`` are the bound listeners as URLs, ``bound``
    their hosts and ports by name.
    """

    def __init__(
        self,
        server: KafkaServer,
        tls: BrokerTls,
        handlers: Mapping[int, Handler],
        services: Services,
        rng: Random,
        inter_broker_name: str | None,
    ) -> None:
        self._server = server
        self._tls = tls
        self._handlers = handlers
        self._services = services
        self._effective = services.effective
        self._rng = rng
        self._inter_broker_name = inter_broker_name
        self._authentication: Authentication | None = None
        self.addresses: list[str] = []
        self.bound: dict[str, tuple[str, int]] = {}
        self.instances: InstanceListeners | None = None
        """The listeners of instances; None before there is one."""
        self.binds_new = False
        """Whether a change of the properties binds new listeners: set while the broker runs."""

    def bind(self, configured: Iterable[Listener]) -> None:
        """Bind the listeners of the properties file, except those that were removed while the broker ran.

        Raises ConfigError and ListenError.
        """
        wanted = {listener.name for listener in self._effective.config.listeners}
        self._tls.update(self._effective.config)
        for listener in configured:
            if listener.name in wanted:
                self._bind(listener)

    def update(self) -> None:
        """Unbind the listeners whose names are gone, then bind those whose names are new."""
        self._tls.update(self._effective.config)
        wanted = {listener.name for listener in self._effective.config.listeners}
        gone = (self._server.listening & self.bound.keys()) - wanted
        self.addresses = [address for address in self.addresses if address.partition("://")[0] not in gone]
        unbinding = gatherResults([self._server.give_up(name) for name in gone], consumeErrors=True)
        unbinding.addCallback(lambda _: self.bind_new())

    def bind_new(self) -> None:
        """Bind the listeners that were added while the broker ran; a failure does not stop the broker."""
        for listener in self._effective.config.listeners if self.binds_new else ():
            if listener.name not in self._server.listening:
                try:
                    self._bind(listener)
                    log.info("Listening on %s", self.addresses[-1])
                except (ConfigError, ListenError) as problem:
                    log.error("%s", problem)
        self.update_instances()

    def update_instances(self) -> None:
        """Bind the listeners that instances have now, and unbind others, if the broker runs."""
        tenants = self._server.tenants
        if tenants is None or not self.binds_new:
            return
        if self.instances is None:
            if not tenants.routes.listeners:
                return
            # A broker without instances does not pay for them.
            from kafkacompat.instance_listeners import InstanceListeners

            self.instances = InstanceListeners(
                self._server, tenants, self._services.clock, self._secure, lambda: self.binds_new
            )
        self.instances.follow(tenants.routes.listeners)

    def list_unbound(self) -> Mapping[str, str]:
        """List the listeners of instances that cannot be bound, by name, with the reason."""
        return {} if self.instances is None else self.instances.unbound

    def _secure(self, listener: Listener) -> tuple[Callable[[], SaslGate] | None, TlsListener | None]:
        """Return what begins the authentication of a connection, and the TLS side. Raises ConfigError and ListenError."""
        config = self._effective.config
        shared = listener._replace(name=find_settings_name(config.given, listener))
        begin_sasl = self._prepare_sasl(shared.name) if listener.has_sasl else None
        return begin_sasl, self._tls.open(config, shared)

    def stop_authentication(self) -> None:
        """Fetch no more keys of identity providers."""
        if self._authentication is not None:
            self._authentication.stop()

    def _bind(self, listener: Listener) -> None:
        dispatcher = self._find_dispatcher(listener)
        begin_sasl = self._prepare_sasl(listener.name) if listener.has_sasl else None
        tls = self._tls.open(self._effective.config, listener)
        port = self._server.listen(listener.name, listener.host, listener.port, dispatcher, begin_sasl, tls)
        host = f"[{listener.host}]" if ":" in listener.host else listener.host
        self.addresses.append(f"{listener.name}://{host}:{port}")
        self.bound[listener.name] = (listener.host, port)

    def _find_dispatcher(self, listener: Listener) -> Dispatcher | None:
        """Return the dispatcher of a listener that serves other APIs than most."""
        if listener.emulate:
            return emulate_release(listener.emulate, self._handlers, self._services)
        if listener.name == self._inter_broker_name:
            # A single node does not pay for the messages between brokers.
            from kafkacompat.server.inter_broker import serve_brokers

            return serve_brokers(self._handlers, self._services)
        return None

    def _prepare_sasl(self, listener_name: str) -> Callable[[], SaslGate]:
        """Return the function that begins the authentication of a connection; raises ListenError for wrong properties."""
        # A broker without such a listener does not pay for these modules.
        from kafkacompat.server.authentication import Authentication

        if self._authentication is None:
            self._authentication = Authentication(
                self._effective, self._services.metadata, self._services.clock, self._rng, self._make_fetch
            )
        authentication = self._authentication
        try:
            authentication.prepare(listener_name)
        except ConfigError as problem:
            raise ListenError(str(problem)) from None
        return lambda: authentication.admit(listener_name)

    def _make_fetch(self) -> Fetch:
        from kafkacompat.security.sasl.http_fetch import make_fetch

        return make_fetch(self._services.clock)

"""The listeners of instances: bound and unbound as the instances' properties change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, gatherResults

from kafkacompat.config import ConfigError, Listener
from kafkacompat.server.listener import KafkaServer, ListenError
from kafkacompat.timers import Clock, make_steps

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.security.tls.listeners import TlsListener
    from kafkacompat.server.connection import KafkaConnection
    from kafkacompat.server.connection_limits import Objection
    from kafkacompat.server.instance_connections import InstanceConnections
    from kafkacompat.server.sasl_gate import SaslGate
    from kafkacompat.tenancy.routes import InstanceListener

log = logging.getLogger(__name__)

TRAFFIC_NAME = "INSTANCES"
"""The listener's name in metrics: a thousand instances have no series of their own."""

Secure = Callable[[Listener], "tuple[Callable[[], SaslGate] | None, TlsListener | None]"]
"""Returns what begins the authentication of a listener's connections, and its TLS side. Raises ConfigError and ListenError."""


class InstanceListeners:
    """Binds the listeners of instances to a server.

    ``unbound`` has the listeners that cannot be bound, with the reason, by name. They are tried again at the next change. Nothing is
    bound once *may_bind* returns False: the broker stops.
    """

    def __init__(
        self,
        server: KafkaServer,
        tenants: InstanceConnections,
        clock: Clock,
        secure: Secure,
        may_bind: Callable[[], bool],
    ) -> None:
        self._server = server
        self._tenants = tenants
        self._clock = clock
        self._secure = secure
        self._may_bind = may_bind
        self._wanted: Mapping[str, InstanceListener] = {}
        self._bound: dict[str, InstanceListener] = {}
        self._is_changing = self._must_repeat = False
        self.unbound: dict[str, str] = {}

    def follow(self, wanted: Mapping[str, InstanceListener]) -> None:
        """Unbind the listeners that are not wanted any more, or not at their address, then bind the new ones, in turns."""
        self._wanted = dict(wanted)
        if self._is_changing:
            self._must_repeat = True
            return
        self._is_changing, self._must_repeat = True, False
        self.unbound = {name: reason for name, reason in self.unbound.items() if name in wanted}
        freed: list[Deferred[None]] = []
        unbinding = make_steps(self._clock, self._unbind(freed))
        if unbinding is None:
            self._bind_when(freed)
        else:
            unbinding.addCallback(lambda _: self._bind_when(freed))

    def _unbind(self, freed: list[Deferred[None]]) -> Iterator[None]:
        unwanted = [name for name, listener in self._bound.items() if self._wanted.get(name) != listener]
        for name in unwanted:
            del self._bound[name]
            freed.append(self._server.give_up(name))
            yield

    def _bind_when(self, freed: list[Deferred[None]]) -> None:
        """Bind the new listeners when the addresses of the old ones are free."""
        gatherResults(freed, consumeErrors=True).addBoth(lambda _: self._bind_new())

    def _bind_new(self) -> None:
        binding = make_steps(self._clock, self._bind_missing())
        if binding is None:
            self._end_change()
        else:
            binding.addErrback(_log_failure).addBoth(lambda _: self._end_change())

    def _bind_missing(self) -> Iterator[None]:
        missing = [listener for name, listener in self._wanted.items() if name not in self._bound]
        for listener in missing:
            if self._may_bind():
                self._bind(listener)
                yield

    def _end_change(self) -> None:
        self._is_changing = False
        if self._must_repeat:
            self.follow(self._wanted)

    def _bind(self, wanted: InstanceListener) -> None:
        name, address = wanted.name, wanted.address
        listener = Listener(name, address.protocol, address.host, address.port)
        try:
            begin_sasl, tls = self._secure(listener)
            self._server.listen(
                name,
                listener.host,
                listener.port,
                begin_sasl=begin_sasl,
                tls=tls,
                turn_away=self._turn_away,
                traffic_name=TRAFFIC_NAME,
            )
        except (ConfigError, ListenError) as problem:
            reason = str(problem)
            if self.unbound.get(name) != reason:
                log.error("%s", reason)
            self.unbound[name] = reason
        else:
            self.unbound.pop(name, None)
            self._bound[name] = wanted

    def _turn_away(self, listener_name: str, host: str, connections: Collection[KafkaConnection]) -> Objection | None:
        objection = self._server.find_objection(listener_name, host, connections)
        return objection or self._tenants.find_objection(listener_name, host)


def _log_failure(failure: Failure) -> None:
    log.error("Cannot bind the listeners of instances", exc_info=failure.value)

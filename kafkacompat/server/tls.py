"""The TLS side of a broker: loaded at the start, changed with the configuration, reloaded when files change.

A broker without a TLS listener imports none of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kafkacompat.timers import PeriodicCall

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.config import BrokerConfig, Listener
    from kafkacompat.disk import OwnedDisk
    from kafkacompat.network import Network
    from kafkacompat.security.tls.listeners import TlsListener, TlsListeners
    from kafkacompat.storage.files.filesystem import Files
    from kafkacompat.timers import Clock

log = logging.getLogger(__name__)

CHECK_INTERVAL_S = 10
"""Time between two looks at the files of certificates."""


class BrokerTls:
    """Opens the TLS listeners of *config* at once, so that a start with bad certificates touches nothing.

    ``network_between_brokers`` connects to other brokers, with TLS if their listener has it. ``get_disk`` returns the thread
    that reads changed files. Raises ConfigError.
    """

    def __init__(
        self,
        config: BrokerConfig,
        network: Network,
        clock: Clock,
        files: Files,
        get_disk: Callable[[], OwnedDisk],
    ) -> None:
        self._clock = clock
        self._files = files
        self._get_disk = get_disk
        self._in_cluster = config.value("zookeeper.connect") is not None
        self._between_brokers = config.inter_broker_listener.name
        self._listeners: TlsListeners | None = None
        self._checks = PeriodicCall(clock, self._check_files)
        self._is_running = self._is_checking = False
        opened = {listener.name: self.open(config, listener) for listener in config.listeners}
        self.network_between_brokers = self._choose_network(network, opened[self._between_brokers])

    def _choose_network(self, network: Network, tls: TlsListener | None) -> Network:
        if tls is None or not self._in_cluster:
            return network
        from kafkacompat.server.tls_network import TlsNetwork

        return TlsNetwork(network, tls, self._clock)

    def open(self, config: BrokerConfig, listener: Listener) -> TlsListener | None:
        """Return the TLS side of a listener; None for one without TLS. Raises ConfigError."""
        if not listener.has_tls:
            return None
        if self._listeners is None:
            from kafkacompat.security.tls.listeners import TlsListeners

            between_brokers = self._between_brokers if self._in_cluster else None
            self._listeners = TlsListeners(self._files, self._clock, between_brokers)
            self._start_checks()
        return self._listeners.open(config, listener)

    def update(self, config: BrokerConfig) -> None:
        """Apply a changed configuration; once clients are served, new certificates must fit the present ones."""
        if self._listeners is not None:
            self._listeners.update(config, is_running=self._is_running)

    def start(self) -> None:
        """Clients are served from now on: begin to check the files."""
        self._is_running = True
        self._start_checks()

    def _start_checks(self) -> None:
        if self._is_running and self._listeners is not None:
            self._checks.start(CHECK_INTERVAL_S, now=False)

    def stop(self) -> None:
        """Check the files no more."""
        self._is_running = False
        if self._checks.running:
            self._checks.stop()

    def _check_files(self) -> None:
        """Start a check in the thread of a disk, unless the last one still waits for it."""
        if self._is_checking:
            return
        assert self._listeners is not None
        self._is_checking = True
        checking: Deferred[None] = self._get_disk().run(self._listeners.reload_changed)
        checking.addErrback(_log_failure).addBoth(self._end_check)

    def _end_check(self, _: object) -> None:
        self._is_checking = False


def _log_failure(failure: Failure) -> None:
    log.error("Cannot check the files of certificates: %s", failure.value)

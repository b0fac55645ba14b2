"""The process of one broker: reactor, signals, ready line and exit code."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from kafkacompat import __version__
from kafkacompat.cli.allocator import keep_freed_memory
from kafkacompat.cli.garbage import FullCollections
from kafkacompat.reactors import build_reactor

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.cli.for_tests import TestMode
    from kafkacompat.config import BrokerConfig
    from kafkacompat.metrics.turns import ReactorTurns

log = logging.getLogger(__name__)

EXIT_FAILED = 1
TWISTED_TLS = ("twisted.internet._newtls", "twisted.internet.ssl", "twisted.protocols.tls")
LOAD_AFTER_S = 0.2
"""Time from the start until the broker imports the modules that the first consumer needs."""


def run_broker(config: BrokerConfig, test_mode: TestMode | None = None) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP; returns the exit code.

    If the broker cannot start, standard error gets one sentence. *test_mode* is given for a broker whose clock and faults tests
    control.
    """
    keep_freed_memory()
    reactor = install_reactor()
    from kafkacompat.broker import Broker
    from kafkacompat.host import ReactorHost

    host = ReactorHost(reactor) if test_mode is None else test_mode.build_host(reactor)
    faults = None if test_mode is None else test_mode.faults
    broker = Broker(host, config, _measure_turns(reactor, config), faults)
    process = _BrokerProcess(reactor, broker, test_mode)
    reactor.callWhenRunning(process.start)
    reactor.addSystemEventTrigger("before", "shutdown", process.stop)
    stop_on_hangup(reactor, process.stop_reactor)
    reactor.run()
    return process.exit_code


def _measure_turns(reactor: Any, config: BrokerConfig) -> ReactorTurns | None:
    if config.http_address is None:
        return None
    from kafkacompat.cli.turns import measure_turns

    return measure_turns(reactor)


def install_reactor() -> Any:
    """Install the epoll reactor of Linux, or the portable one with KAFKACOMPAT_PORTABLE=1; returns the reactor."""
    from twisted.internet.main import installReactor

    with _without_twisted_tls():
        reactor = build_reactor()
    installReactor(reactor)
    return reactor


@contextlib.contextmanager
def _without_twisted_tls() -> Iterator[None]:
    """Let Twisted's transports import no pyOpenSSL, as if it were not installed: that takes a tenth of a second.

    The TLS of this broker lies above the transports, and imports what it needs. Afterwards the modules can be imported.
    """
    hidden = [name for name in TWISTED_TLS if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None lets an import fail.
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def stop_on_hangup(reactor: Any, stop: Callable[[], None]) -> None:
    """Let a SIGHUP stop the broker, as Twisted does with SIGTERM and SIGINT; under nohup it stays ignored."""
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: reactor.callFromThread(stop))


def log_start() -> None:
    """Log the version and the form of the record walk; a compiled form that is older than its source is a warning."""
    from kafkacompat.wire.walk_form import FORM

    level = logging.WARNING if FORM.is_stale else logging.INFO
    log.log(level, "Started kafkacompat %s, record walk %s", __version__, FORM)


class _BrokerProcess:
    def __init__(self, reactor: Any, broker: Any, test_mode: TestMode | None = None) -> None:
        self._reactor = reactor
        self._broker = broker
        self._test_mode = test_mode
        self.exit_code = 0

    def start(self) -> None:
        from twisted.internet.defer import Deferred

        Deferred.fromCoroutine(self._broker.start()).addCallbacks(self._print_ready_line, self._report_failure)

    def stop(self) -> Any:
        from twisted.internet.defer import Deferred

        return Deferred.fromCoroutine(self._broker.stop()).addErrback(self._report_failure)

    def _print_ready_line(self, _: object) -> None:
        broker = self._broker
        if self._test_mode is not None:
            self._test_mode.begin(broker)
        print(
            "kafkacompat ready",
            *broker.addresses,
            f"node.id={broker.config.node_id}",
            f"cluster.id={broker.cluster_id}",
            f"log.dirs={','.join(broker.config.log_dirs)}",
            flush=True,
        )
        log_start()
        self._reactor.callLater(LOAD_AFTER_S, self._load_ahead)

    def _load_ahead(self) -> None:
        from kafkacompat.timers import make_cooperator

        make_cooperator(self._reactor).coiterate(self._broker.load_ahead()).addBoth(self._start_collections)

    def _start_collections(self, outcome: object) -> object:
        """All long-lived objects exist now: take over the full garbage collections."""
        FullCollections(self._reactor).start()
        return outcome

    def _report_failure(self, failure: Failure) -> None:
        from kafkacompat.broker import START_ERRORS
        from kafkacompat.storage.files.os_errors import describe_error
        from kafkacompat.wire.errors import KafkaError

        self.exit_code = EXIT_FAILED
        # A KafkaError means that the metadata cannot be written.
        if failure.check(*START_ERRORS, KafkaError, OSError):
            assert failure.value is not None
            print(f"kafkacompat: {describe_error(failure.value)}", file=sys.stderr)
        else:
            logging.getLogger(__name__).critical("The broker failed", exc_info=failure.value)
        if self._reactor.running:
            self._reactor.callLater(0, self.stop_reactor)

    def stop_reactor(self) -> None:
        """Begin the shutdown, unless it has begun."""
        from twisted.internet.error import ReactorNotRunning

        with contextlib.suppress(ReactorNotRunning):
            self._reactor.stop()

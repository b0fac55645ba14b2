"""`kafkacompat serve --test-clock` and `--faults`: a broker whose clock and faults tests control."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kafkacompat.adjustable_reactor import AdjustableReactor
from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.config.web_page import find_login_objection
from kafkacompat.faults import Faults
from kafkacompat.faults.file import load_faults
from kafkacompat.host import ReactorHost
from kafkacompat.monitoring.administration.for_tests import Controls
from kafkacompat.watched_host import WatchedHost

if TYPE_CHECKING:
    from kafkacompat.broker import Broker
    from kafkacompat.host import Host

log = logging.getLogger(__name__)


class TestMode:
    """What tests control of the broker of this process; ``faults`` are its rules."""

    def __init__(self, faults: Faults, *, has_clock: bool) -> None:
        self.faults = faults
        self._has_clock = has_clock
        self._clock: AdjustableReactor | None = None

    def build_host(self, reactor: Any) -> Host:
        """Return the host of the broker; with a clock for tests, one whose time they advance."""
        if not self._has_clock:
            return ReactorHost(reactor)
        self._clock = AdjustableReactor(reactor)
        return cast("Host", WatchedHost(ReactorHost(self._clock), self._clock.watch))

    def begin(self, broker: Broker) -> None:
        """Warn once the broker runs, and serve /v1/test if there is an HTTP listener."""
        names = [*(["its clock"] if self._has_clock else []), "its faults"]
        log.warning("This broker is for tests, which control %s: it must not serve in production", " and ".join(names))
        if broker.monitor is not None:
            broker.monitor.serve_tests(Controls(self._clock, self.faults))
            log.warning("Serving /v1/test on %s:%d", *broker.monitor.address or ("", 0))


def prepare_tests(config: BrokerConfig, faults: Path | None, *, has_clock: bool) -> TestMode:
    """Return the mode of a broker for tests; raises ConfigError, one sentence."""
    if has_clock and config.http_address is None:
        raise ConfigError(
            "--test-clock: the clock is advanced over HTTP, and there is no HTTP listener: set kafkacompat.http.listener"
        )
    if config.http_address is not None:
        # A broker whose clock is advanced by years deletes all records: only its users may control it.
        subject = f"{'--test-clock' if has_clock else '--faults'} with kafkacompat.http.listener"
        if (objection := find_login_objection(config, subject)) is not None:
            raise ConfigError(objection)
    rules = Faults(in_cluster=config.optional_string("zookeeper.connect") is not None)
    if faults is not None:
        load_faults(faults, rules)
    return TestMode(rules, has_clock=has_clock)

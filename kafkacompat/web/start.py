"""Adds the web page to the HTTP listener of a broker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from kafkacompat.monitoring.monitor import Monitor
from kafkacompat.web.forms import MAX_FORM_BYTES
from kafkacompat.web.site import Entrance, WebPage
from kafkacompat.web.throughput import Throughput
from kafkacompat.web.visits import WebServices
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.config import BrokerConfig
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.server.dispatcher import Dispatcher
    from kafkacompat.tenancy.registry import Instances
    from kafkacompat.timers import Clock

log = logging.getLogger(__name__)


def serve_web_page(
    monitor: Monitor,
    config: BrokerConfig,
    clock: Clock,
    dispatcher: Dispatcher,
    instances: Instances,
    replicas: ReplicaManager,
    run: Callable[..., Deferred[Any]],
    describe_usage: Callable[[str], Mapping[str, Any]],
) -> None:
    """Serve /ui from now on, and measure throughput until the monitor stops. *run* calls a function in a thread."""

    def find_instance(topic: str) -> str | None:
        owner = instances.find_owner(entities.TOPIC, topic) if instances else None
        return None if owner is None else owner.name

    throughput = Throughput(clock, replicas, find_instance)
    services = WebServices(
        node_id=config.node_id,
        clock=clock,
        dispatcher=dispatcher,
        instances=instances,
        access=monitor.access,
        throughput=throughput,
        run=run,
        describe_usage=describe_usage,
        listener=config.listeners[0].name,
        hosts=list_own_hosts(config),
        rng=SystemRandom(),
        is_writable=config.bool("kafkacompat.ui.writable"),
    )
    monitor.add_pages({"": Entrance(), "ui": WebPage(services)}, MAX_FORM_BYTES, throughput.stop)
    throughput.start()
    if monitor.address is not None:
        log.info("Serving the web page /ui on %s:%d", *monitor.address)


def list_own_hosts(config: BrokerConfig) -> frozenset[str]:
    """Return the names of this broker in its configuration, in lower case."""
    hosts = [listener.host for listener in config.listeners]
    hosts += [host for host, _ in config.advertised_listeners.values()]
    if config.http_address is not None:
        hosts.append(config.http_address[0])
    return frozenset(host.lower().rstrip(".") for host in hosts if host)

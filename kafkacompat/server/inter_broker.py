"""The inter-broker listener of a broker in a cluster: requests of the controller and of other brokers come in only there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kafkacompat.handlers import INTER_BROKER_HANDLERS
from kafkacompat.handlers.controller_apis import CONTROLLER_APIS
from kafkacompat.server.dispatcher import Dispatcher

if TYPE_CHECKING:
    from kafkacompat.handlers import Handler
    from kafkacompat.handlers.context import Services


def serve_brokers(handlers: Mapping[int, Handler], services: Services) -> Dispatcher:
    """Return a dispatcher that serves *handlers*, as the other listeners do, and the APIs between brokers in addition."""
    known = {**handlers, **INTER_BROKER_HANDLERS}
    enclosed = Dispatcher({key: handler for key, handler in handlers.items() if key in CONTROLLER_APIS}, services)
    served = {key: handler.versions for key, handler in known.items()}
    return Dispatcher(known, replace(services, served=served, enclosed=enclosed))

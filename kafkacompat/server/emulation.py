"""Listeners that serve the APIs and versions of an older Apache Kafka release, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kafkacompat.handlers import Handler
from kafkacompat.server.dispatcher import Dispatcher
from kafkacompat.wire import releases
from kafkacompat.wire.headers import API_VERSIONS_KEY, PRODUCE_KEY
from kafkacompat.wire.schema import NO_VERSIONS, Versions

if TYPE_CHECKING:
    from kafkacompat.handlers.context import Services
    from kafkacompat.wire.releases import Release


def emulate_release(name: str, handlers: Mapping[int, Handler], services: Services) -> Dispatcher:
    """Return a dispatcher for the APIs and versions that the release *name* and *handlers* both serve."""
    release = releases.find_release(name)
    known = _select_known_versions(release, handlers)
    served = {key: handler.versions for key, handler in known.items() if handler.versions != NO_VERSIONS}
    if release.is_since("4.0"):
        # ApiVersions lists Produce 0 to 2 for librdkafka, but they are not served (KAFKA-18659).
        served[PRODUCE_KEY] = Versions(0, served[PRODUCE_KEY].last)
    features = services.features if release.is_since("4.0") else {}
    return Dispatcher(known, replace(services, served=served, features=features, emulated=release))


def _select_known_versions(release: Release, handlers: Mapping[int, Handler]) -> dict[int, Handler]:
    known = {}
    for key, handler in handlers.items():
        theirs = release.versions.get(key, NO_VERSIONS)
        versions = Versions(max(theirs.first, handler.versions.first), min(theirs.last, handler.versions.last))
        if versions.first <= versions.last:
            known[key] = Handler(key, versions)
    if release.name == "0.9.0":
        # Kafka 0.9 does not know ApiVersions: it sends no response, and does not close the connection either.
        known[API_VERSIONS_KEY] = Handler(API_VERSIONS_KEY, NO_VERSIONS)
    return known

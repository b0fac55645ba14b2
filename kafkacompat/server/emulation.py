"""Listeners that look like the broker of an older Apache Kafka release: its APIs in its versions, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kafkacompat.handlers import Handler
from kafkacompat.server.dispatcher import Dispatcher
from kafkacompat.wire import releases
from kafkacompat.wire.schema import NO_VERSIONS, Versions

if TYPE_CHECKING:
    from kafkacompat.handlers.context import Services
    from kafkacompat.wire.releases import Release

PRODUCE, API_VERSIONS = 0, 18


def emulate_release(name: str, handlers: Mapping[int, Handler], services: Services) -> Dispatcher:
    """A dispatcher for what the release *name* and *handlers* both serve."""
    release = releases.find_release(name)
    known = _select_known_versions(release, handlers)
    served = {key: handler.versions for key, handler in known.items() if handler.versions != NO_VERSIONS}
    if release.is_since("4.0"):
        # Listed for librdkafka, which looks for it, and not served (KAFKA-18659).
        served[PRODUCE] = Versions(0, served[PRODUCE].last)
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
        # It has no answer for requests that it does not know, and does not close the connection either.
        known[API_VERSIONS] = Handler(API_VERSIONS, NO_VERSIONS)
    return known

"""The TLS side of all listeners of a broker: certificates that are replaced while connections stay open."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from kafkacompat.config.listeners import INSTANCE_PREFIXES
from kafkacompat.config.properties import ConfigError
from kafkacompat.security.principals import ANONYMOUS, USER_TYPE, Principal
from kafkacompat.security.tls.client import read_peer_name
from kafkacompat.security.tls.credentials import check_mutual_trust, check_replacement, load_credentials
from kafkacompat.security.tls.mapping import NoMatchingRuleError
from kafkacompat.security.tls.session import TlsError, TlsSession
from kafkacompat.security.tls.settings import read_tls_settings
from kafkacompat.security.tls.stores import read_file
from kafkacompat.timers import now_ms

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig, Listener
    from kafkacompat.security.tls.credentials import Credentials
    from kafkacompat.security.tls.settings import TlsSettings
    from kafkacompat.security.tls.stores import ReadFile
    from kafkacompat.storage.files.filesystem import Files
    from kafkacompat.timers import Clock

log = logging.getLogger(__name__)

Stamps = Mapping[str, "tuple[int, int] | None"]
"""Time of the last change in milliseconds, and size, of files by path; None for a file that cannot be read."""


class TlsListener:
    """The TLS side of one listener: it makes sessions with its present certificates.

    Unless ``names_users``, certificates name nobody: with SASL_SSL the user is the one that SASL authenticates.
    """

    def __init__(self, name: str, credentials: Credentials, stamps: Stamps, *, names_users: bool = True) -> None:
        self.name = name
        self._names_users = names_users
        self.credentials = credentials
        self.stamps = stamps

    def accept(self) -> TlsSession:
        """Return the session of a client that has connected."""
        return TlsSession(self.credentials.server, is_server=True)

    def connect(self, host: str) -> TlsSession:
        """Return a session towards another broker."""
        return self.credentials.client.connect(host)

    def check_host(self, session: TlsSession, host: str) -> None:
        """Raise TlsError unless the peer's certificate is for *host*, if that is to be checked."""
        self.credentials.client.check_host(session, host)

    def find_principal(self, session: TlsSession) -> Principal:
        """Return the user of a session whose handshake is complete. Raises TlsError if no mapping rule applies."""
        name = read_peer_name(session) if self._names_users else None
        if name is None:
            return ANONYMOUS
        try:
            return Principal(USER_TYPE, self.credentials.rules.map_name(name))
        except NoMatchingRuleError as problem:
            raise TlsError(str(problem)) from None


class TlsListeners:
    """The listeners with TLS; the one named ``between_brokers`` must accept its own certificates."""

    def __init__(self, files: Files, clock: Clock, between_brokers: str | None = None) -> None:
        self._files = files
        self._clock = clock
        self._between_brokers = between_brokers
        self._listeners: dict[str, TlsListener] = {}
        self._of_instances: dict[str, Listener] = {}

    def open(self, config: BrokerConfig, listener: Listener) -> TlsListener:
        """Return the TLS side of a listener, loaded at its first use. Raises ConfigError, which names the listener."""
        name = listener.name
        if name not in self._listeners:
            try:
                settings = read_tls_settings(config, name)
                stamps = self._read_stamps(settings)
                credentials = load_credentials(settings, self._files.read)
                if name == self._between_brokers:
                    check_mutual_trust(credentials)
            except ConfigError as problem:
                raise ConfigError(f"listener {name}: {problem}") from None
            credentials.warn_of_validity(name, self._now())
            self._listeners[name] = TlsListener(name, credentials, stamps, names_users=listener.protocol == "SSL")
            if name.startswith(INSTANCE_PREFIXES):
                self._of_instances[name] = listener
        return self._listeners[name]

    def update(self, config: BrokerConfig, *, is_running: bool = True) -> None:
        """Apply a changed configuration; certificates that cannot be used are logged, and the old ones stay.

        While the listeners are running, new certificates must fit the present ones.
        """
        by_name = {listener.name: listener for listener in config.listeners if listener.has_tls} | self._of_instances
        for name in self._listeners.keys() - by_name.keys():
            del self._listeners[name]
        for name, listener in self._listeners.items():
            try:
                settings = read_tls_settings(config, name)
            except ConfigError as problem:
                log.error("listener %s keeps its TLS settings: %s", name, problem)
                continue
            if settings != listener.credentials.settings:
                self._replace(listener, settings, is_running=is_running)

    def reload_changed(self) -> None:
        """Load the certificates of listeners whose files have changed. [disk]"""
        for listener in list(self._listeners.values()):
            settings = listener.credentials.settings
            if self._read_stamps(settings) != listener.stamps:
                self._replace(listener, settings)

    def _replace(self, listener: TlsListener, settings: TlsSettings, *, is_running: bool = True) -> None:
        listener.stamps = self._read_stamps(settings)
        try:
            credentials = load_credentials(settings, self._files.read)
            before = (listener.credentials,) if is_running else ()
            for present in before:
                check_replacement(present, credentials)
            if listener.name == self._between_brokers:
                check_mutual_trust(*before, credentials)
        except ConfigError as problem:
            log.error("listener %s keeps its certificate: %s", listener.name, problem)
            return
        listener.credentials = credentials
        expiry = credentials.key_store.certificate.not_valid_after_utc
        log.info(
            "Replaced the certificate of listener %s: %s, until %s",
            listener.name,
            credentials.name,
            f"{expiry:%Y-%m-%d}",
        )
        credentials.warn_of_validity(listener.name, self._now())

    def _read_stamps(self, settings: TlsSettings) -> Stamps:
        """Return what changes with the files of the settings."""
        return {path: self._read_stamp(path) for path in settings.locations}

    def _read_stamp(self, path: str) -> tuple[int, int] | None:
        try:
            return self._files.modified_ms(path), self._files.size(path)
        except OSError:
            return None

    def _now(self) -> datetime:
        return datetime.fromtimestamp(now_ms(self._clock) / 1000, timezone.utc)


def check_tls_change(before: BrokerConfig, after: BrokerConfig, read: ReadFile = read_file) -> None:
    """Check the certificates that a change of the configuration brings to listeners. Raises ConfigError, which names the listener."""
    running = {listener.name for listener in before.listeners if listener.has_tls}
    for listener in after.listeners:
        if listener.has_tls:
            try:
                _check_listener(before if listener.name in running else None, after, listener, read)
            except ConfigError as problem:
                raise ConfigError(f"listener {listener.name}: {problem}") from None


def _check_listener(before: BrokerConfig | None, after: BrokerConfig, listener: Listener, read: ReadFile) -> None:
    settings = read_tls_settings(after, listener.name)
    present = None if before is None else read_tls_settings(before, listener.name)
    if settings != present:
        is_between_brokers = bool(after.value("zookeeper.connect")) and listener == after.inter_broker_listener
        _check_credentials(present, settings, read, is_between_brokers=is_between_brokers)


def _check_credentials(
    present: TlsSettings | None, settings: TlsSettings, read: ReadFile, *, is_between_brokers: bool
) -> None:
    credentials = load_credentials(settings, read)
    if is_between_brokers:
        check_mutual_trust(credentials)
    if present is None:
        return
    try:
        before = load_credentials(present, read)
    except ConfigError:
        # The files of the present certificate are gone; the listener compares what it has loaded.
        return
    check_replacement(before, credentials)

"""The TLS side of listeners: certificates that change in files and by configuration, host names and users."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.task import Clock

from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.security.tls.listeners import TlsListener, TlsListeners, check_tls_change
from kafkacompat.security.tls.session import TlsError, TlsSession
from tests.fakes.certificates import Authority, Member, shared_authority, shared_member
from tests.fakes.memory_files import MemoryFiles
from tests.kafkacompat.server.tls_world import NOW, make_properties, open_listener, shake_hands

PATH = "/certificates.pem"


class World:
    """Listeners whose certificate is in a file."""

    def __init__(self, between_brokers: str | None = None) -> None:
        self.files = MemoryFiles()
        self.write(shared_member("broker-1").pem())
        self.config = self.configure()
        clock = Clock()
        clock.advance(NOW)
        self.listeners = TlsListeners(self.files, clock, between_brokers)
        self.listener = self.listeners.open(self.config, self.config.listeners[0])

    def configure(self, **changes: str) -> BrokerConfig:
        properties = make_properties(shared_member("broker-1"), ssl_keystore_location=PATH, **changes)
        inline = ("ssl.keystore.key", "ssl.keystore.certificate.chain")
        return BrokerConfig({name: value for name, value in properties.items() if name not in inline})

    def write(self, text: str, path: str = PATH) -> None:
        if self.files.exists(path):
            self.files.remove(path)
        self.files.now_ms += 1000
        self.files.open(path, create=True).append([text.encode()], len(text))

    @property
    def shown(self) -> int:
        """The serial number of the certificate that new clients see."""
        client, server = self.listener.connect("broker-1"), self.listener.accept()
        shake_hands(client, server)
        serial: int = client.peer_certificate.serial_number
        return serial


def serial_of(member: Member) -> int:
    return member.certificate.serial_number


def test_a_changed_file_is_loaded_and_open_sessions_stay(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    world = World()
    client, server = world.listener.connect("broker-1"), world.listener.accept()
    shake_hands(client, server)
    renewed = shared_authority().issue("broker-1")
    world.write(renewed.pem())
    world.listeners.reload_changed()
    assert world.shown == serial_of(renewed)
    assert "Replaced the certificate of listener SSL: CN=broker-1, until 2120-01-01" in caplog.text
    assert server.receive(client.encrypt(b"still here")) == b"still here"


def test_an_unchanged_file_is_not_loaded() -> None:
    world = World()
    credentials = world.listener.credentials
    world.listeners.reload_changed()
    assert world.listener.credentials is credentials


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no private key in PEM"),
        (shared_authority().issue("somebody").pem(), "is for CN=somebody, the present one for CN=broker-1"),
        (None, "cannot be read: there is no such file"),
    ],
)
def test_a_bad_file_is_logged_once_and_the_old_certificate_stays(
    text: str | None, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    if text is None:
        world.files.remove(PATH)
    else:
        world.write(text)
    for _ in range(3):
        world.listeners.reload_changed()
    assert world.shown == serial_of(shared_member("broker-1"))
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("listener SSL keeps its certificate: ")
    assert words in line
    renewed = shared_authority().issue("broker-1")
    world.write(renewed.pem())
    world.listeners.reload_changed()
    assert world.shown == serial_of(renewed)


def test_a_certificate_that_other_brokers_would_not_accept_is_not_taken(caplog: pytest.LogCaptureFixture) -> None:
    world = World(between_brokers="SSL")
    world.write(Authority("other").issue("broker-1").pem())
    world.listeners.reload_changed()
    assert world.shown == serial_of(shared_member("broker-1"))
    assert "brokers with these stores cannot connect to each other" in caplog.text


def test_a_changed_configuration_is_applied() -> None:
    world = World()
    renewed = shared_authority().issue("broker-1")
    world.write(renewed.pem(), "/new.pem")
    world.listeners.update(world.configure(**{"listener.name.ssl.ssl.keystore.location": "/new.pem"}))
    assert world.shown == serial_of(renewed)


def test_a_start_takes_the_changed_configuration_whatever_the_file_says() -> None:
    world = World()
    other = shared_authority().issue("somebody")
    world.write(other.pem(), "/new.pem")
    changed = world.configure(**{"listener.name.ssl.ssl.keystore.location": "/new.pem"})
    world.listeners.update(changed, is_running=False)
    assert world.shown == serial_of(other)


def test_a_configuration_that_cannot_be_used_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.listeners.update(world.configure(**{"listener.name.ssl.ssl.keystore.location": "/missing"}))
    world.listeners.update(world.configure(**{"listener.name.ssl.ssl.keystore.type": "DKS"}))
    assert world.shown == serial_of(shared_member("broker-1"))
    assert len(caplog.records) == 2


def test_a_change_is_checked_before_it_is_stored() -> None:
    world = World()
    world.write(shared_authority().issue("somebody").pem(), "/other.pem")
    after = world.configure(**{"listener.name.ssl.ssl.keystore.location": "/other.pem"})
    with pytest.raises(ConfigError, match=r"^listener SSL: .*is for CN=somebody"):
        check_tls_change(world.config, after, world.files.read)
    missing = world.configure(**{"listener.name.ssl.ssl.keystore.location": "/missing.pem"})
    with pytest.raises(ConfigError, match=r"missing\.pem cannot be read"):
        check_tls_change(world.config, missing, world.files.read)
    check_tls_change(world.config, world.configure(**{"max.connections": "5"}), world.files.read)


def test_a_new_listener_is_checked_before_it_is_stored() -> None:
    world = World()
    after = world.configure(
        listeners="SSL://broker-1:9093,OTHER://broker-1:9094",
        **{"listener.security.protocol.map": "SSL:SSL,OTHER:SSL", "listener.name.other.ssl.keystore.location": "/none"},
    )
    with pytest.raises(ConfigError, match=r"^listener OTHER: .*/none cannot be read"):
        check_tls_change(world.config, after, world.files.read)


def connect(listener: TlsListener, host: str, **changes: Any) -> TlsSession:
    client, server = listener.connect(host), listener.accept()
    shake_hands(client, server)
    return client


@pytest.mark.parametrize("host", ["broker-1", "127.0.0.1", "localhost"])
def test_a_certificate_for_the_host_is_accepted(host: str) -> None:
    listener = open_listener(make_properties(shared_member("broker-1")))
    listener.check_host(connect(listener, host), host)


@pytest.mark.parametrize("host", ["broker-2", "127.0.0.2"])
def test_a_certificate_for_another_host_is_not(host: str) -> None:
    listener = open_listener(make_properties(shared_member("broker-1")))
    with pytest.raises(TlsError, match=f"the certificate 'CN=broker-1' is not for the host '{host}'"):
        listener.check_host(connect(listener, host), host)
    careless = open_listener(make_properties(shared_member("broker-1"), ssl_endpoint_identification_algorithm=""))
    careless.check_host(connect(careless, host), host)


@pytest.mark.parametrize("host", ["broker-1", "127.0.0.1"])
def test_a_certificate_without_alternative_names_is_for_no_host(host: str) -> None:
    """Its common name does not count (RFC 6125)."""
    listener = open_listener(make_properties(shared_authority().issue("broker-1", ())))
    with pytest.raises(TlsError, match=f"the certificate 'CN=broker-1' is not for the host '{host}'"):
        listener.check_host(connect(listener, host), host)


def test_a_name_is_sent_along_and_an_address_is_not() -> None:
    listener = open_listener(make_properties(shared_member("broker-1")))
    for host, name in (("broker-1", b"broker-1"), ("127.0.0.1", None)):
        server = listener.accept()
        shake_hands(listener.connect(host), server)
        assert server.connection.get_servername() == name


def test_a_failed_start_names_the_listener() -> None:
    with pytest.raises(ConfigError, match=r"listener SSL: ssl\.keystore\.location=/none cannot be read"):
        properties = make_properties(shared_member("a"), ssl_keystore_location="/none", ssl_truststore_type="PEM")
        del properties["ssl.keystore.key"], properties["ssl.keystore.certificate.chain"]
        open_listener(properties)


def test_with_sasl_a_certificate_names_nobody() -> None:
    listener = open_listener(make_properties(shared_member("broker-1"), ssl_client_auth="required"))
    for names_users, user in ((True, "User:CN=broker-1"), (False, "User:ANONYMOUS")):
        sided = TlsListener("SSL", listener.credentials, {}, names_users=names_users)
        server = sided.accept()
        shake_hands(sided.connect("broker-1"), server)
        assert str(sided.find_principal(server)) == user

"""TLS between a connection and its transport: handshakes, responses in pieces, and what attackers send."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL
from OpenSSL.crypto import FILETYPE_ASN1, load_certificate

from kafkacompat.quotas.connection_rates import ConnectionAdmission
from kafkacompat.security.principals import ANONYMOUS
from kafkacompat.security.tls.session import TlsSession
from kafkacompat.server.tls_transport import HANDSHAKE_TIMEOUT_S
from kafkacompat.storage.segment.shared_files import FileRegion, SegmentFile
from tests.fakes.certificates import Authority, issue_itself, shared_authority, shared_member
from tests.fakes.memory_files import MemoryFiles
from tests.kafkacompat.server.tls_world import PlainClient, TlsClient, TlsWorld, make_client_context
from tests.kafkacompat.server.world import make_request

ANSWER_BYTES = 10
VERSION_3, VERSION_10 = b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x09"
"""The field that begins a certificate, in DER."""


class Log:
    """A file in memory with regions of it."""

    def __init__(self, size_bytes: int) -> None:
        self.content = bytes(range(256)) * (size_bytes // 256)
        self.files = MemoryFiles()
        self.file = self.files.open("/log", create=True)
        self.file.append([self.content], size_bytes)
        self._segment = SegmentFile(self.file)

    def region(self, position: int, size_bytes: int) -> FileRegion:
        assert self._segment.acquire()
        return FileRegion(self._segment, position, size_bytes)

    @property
    def is_released(self) -> bool:
        """Whether no region is in use; to be asked once."""
        self._segment.release()
        return not self._segment.acquire()


@pytest.mark.parametrize("version", [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION])
def test_requests_are_answered_over_both_versions(version: int) -> None:
    world = TlsWorld()
    client = world.connect_tls(version=version)
    client.send(make_request(1) + make_request(2))
    world.turn()
    assert client.session.get_protocol_version() == version
    assert world.dispatcher.seen == [1, 2]
    assert len(client.plain) == 2 * ANSWER_BYTES
    assert world.connection.principal == ANONYMOUS


def test_a_certificate_names_the_user() -> None:
    world = TlsWorld(ssl_client_auth="required")
    world.connect_tls(shared_member("alice"))
    assert str(world.connection.principal) == "User:CN=alice"


def test_a_mapping_rule_names_the_user() -> None:
    world = TlsWorld(ssl_client_auth="required", ssl_principal_mapping_rules="RULE:^CN=(.*)$/$1/U")
    world.connect_tls(shared_member("alice"))
    assert str(world.connection.principal) == "User:ALICE"


def test_a_certificate_without_a_rule_is_turned_away() -> None:
    world = TlsWorld(ssl_client_auth="required", ssl_principal_mapping_rules="RULE:^OU=(.*)$/$1/")
    world.connect_tls(shared_member("alice"))
    assert world.connections == set()
    assert "no rule of ssl.principal.mapping.rules applies to 'CN=alice'" in world.complaints[0]


def test_a_requested_certificate_may_be_missing() -> None:
    world = TlsWorld(ssl_client_auth="requested")
    world.connect_tls()
    assert world.connection.principal == ANONYMOUS


@pytest.mark.parametrize("client_auth", ["requested", "required"])
def test_a_strangers_certificate_is_not_accepted(client_auth: str) -> None:
    world = TlsWorld(ssl_client_auth=client_auth)
    client = world.connect_tls(Authority("other").issue("mallory"))
    assert world.connections == set()
    (line,) = world.complaints
    assert "the certificate 'CN=mallory' is not accepted: the authority that issued it is not trusted" in line
    assert "alert" in client.alert


def test_a_self_signed_certificate_is_not_accepted() -> None:
    world = TlsWorld(ssl_client_auth="required")
    world.connect_tls(issue_itself("mallory"))
    assert "'CN=mallory' is not accepted: it is self-signed and not trusted" in world.complaints[0]


def test_an_expired_certificate_is_not_accepted() -> None:
    world = TlsWorld(ssl_client_auth="required")
    world.connect_tls(shared_authority().issue("alice", end=datetime(2021, 1, 1, tzinfo=timezone.utc)))
    assert "'CN=alice' is not accepted: it has expired" in world.complaints[0]
    assert world.connections == set()


@pytest.mark.filterwarnings("ignore:Passing pyOpenSSL X509 objects")
def test_a_certificate_whose_name_cannot_be_read_is_not_accepted() -> None:
    """OpenSSL reads it, and cryptography does not: a certificate of version 10."""
    member = issue_itself("mallory")
    encoded = member.certificate.public_bytes(Encoding.DER)
    context = make_client_context(member)
    context.use_certificate(load_certificate(FILETYPE_ASN1, encoded.replace(VERSION_3, VERSION_10, 1)))
    world = TlsWorld(ssl_client_auth="required")
    world.connect(TlsClient(context))
    assert world.connections == set()
    (line,) = world.complaints
    assert "the certificate '(unreadable)' is not accepted" in line


def test_a_line_break_in_a_name_does_not_break_a_line_of_the_log() -> None:
    world = TlsWorld(ssl_client_auth="required")
    world.connect_tls(issue_itself("a\nb"))
    assert "'CN=a\\nb'" in world.complaints[0]


def test_a_client_without_the_required_certificate_is_refused_with_an_alert() -> None:
    world = TlsWorld(ssl_client_auth="required")
    client = world.connect_tls()
    assert world.connections == set()
    assert "the peer shows no certificate, which ssl.client.auth=required demands" in world.complaints[0]
    assert "alert certificate required" in client.alert


@pytest.mark.parametrize("size_bytes", [1, 65_536, 3_000_064])
def test_regions_and_buffers_arrive_in_order(size_bytes: int) -> None:
    world, log = TlsWorld(), Log(3_000_064)
    client = world.connect_tls()
    world.connection.transport.send_parts([b"head", log.region(0, size_bytes), b"tail", log.region(7, 9), b""])
    world.turn(turns=2000)
    assert client.plain == b"head" + log.content[:size_bytes] + b"tail" + log.content[7:16]
    assert world.connection.transport.queued_bytes == 0
    assert log.is_released


def test_a_client_that_does_not_read_holds_one_piece_of_a_response() -> None:
    world, log = TlsWorld(), Log(3_000_064)
    client = world.connect_tls()
    client.transport.pauseProducing()
    transport: Any = world.connection.transport
    transport.send_parts([log.region(0, 3_000_064)])
    world.turn(turns=500)
    assert transport.transport.queued_bytes < 100_000
    assert transport.queued_bytes > 2_000_000
    client.transport.resumeProducing()
    world.turn(turns=2000)
    assert client.plain == log.content


def test_cold_data_is_read_ahead_and_nothing_overtakes_it() -> None:
    world, log = TlsWorld(), Log(300_032)
    client = world.connect_tls()
    log.files.cold = True
    world.connection.transport.send_parts([b"head", log.region(0, 300_032), b"tail"])
    world.turn()
    ((region, offset, size_bytes, reading),) = world.reads_ahead
    assert (client.plain, offset, size_bytes) == (b"head", 0, 300_032)
    region.load(offset, size_bytes)
    reading.callback(None)
    world.turn(turns=500)
    assert client.plain == b"head" + log.content + b"tail"


def test_a_region_that_was_truncated_closes_the_connection() -> None:
    world, log = TlsWorld(), Log(300_032)
    world.connect_tls()
    log.file.truncate(100)
    world.connection.transport.send_parts([log.region(0, 300_032)])
    world.turn()
    assert world.connections == set()
    assert "a response cannot be sent" in world.complaints[0]
    assert log.is_released


def test_closing_sends_everything_and_says_farewell() -> None:
    world, log = TlsWorld(), Log(300_032)
    client = world.connect_tls()
    world.connection.transport.send_parts([log.region(0, 300_032)])
    world.connection.transport.loseConnection()
    world.turn(turns=500)
    assert (client.plain, client.alert) == (log.content, "closed")
    assert world.connections == set()
    assert world.complaints == []


def test_a_clients_farewell_closes_the_connection() -> None:
    world = TlsWorld()
    client = world.connect_tls()
    client.session.shutdown()
    client.flush()
    world.turn()
    assert (world.connections, world.complaints) == (set(), [])


def test_a_lost_connection_releases_what_was_queued() -> None:
    world, log = TlsWorld(), Log(3_000_064)
    client = world.connect_tls()
    client.transport.pauseProducing()
    world.connection.transport.send_parts([log.region(0, 3_000_064)])
    client.transport.abortConnection()
    world.turn()
    assert world.connections == set()
    assert log.is_released


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (make_request(1), "the peer does not send TLS: set its security.protocol to SSL or SASL_SSL"),
        (b"GET / HTTP/1.1\r\n\r\n", "the peer does not send TLS"),
        (b"\x16\x03\x01\x00\x05hello", "the TLS handshake failed"),
        (b"\x16\x03\x01\xff\xff" + b"\0" * 70_000, "the TLS handshake failed"),
        (b"\x15\x03\x01\x00\x02\x02\x28", "the TLS handshake failed"),
        (b"\x16" * 1000, "the TLS handshake failed"),
    ],
    ids=["kafka", "http", "short hello", "huge hello", "alert", "garbage"],
)
def test_what_is_no_handshake_closes_the_connection_with_a_line(data: bytes, words: str) -> None:
    world = TlsWorld()
    client: Any = world.connect(PlainClient())
    client.transport.write(data)
    world.turn()
    assert world.connections == set()
    (line,) = world.complaints
    assert words in line
    assert client.ending is not None


def test_garbage_after_the_handshake_closes_the_connection() -> None:
    world = TlsWorld()
    client = world.connect_tls()
    client.transport.write(b"\x17\x03\x03\x00\x20" + b"\0" * 32)
    world.turn()
    assert world.connections == set()
    assert len(world.complaints) == 1


def test_a_half_handshake_ends_after_a_time() -> None:
    world = TlsWorld()
    silent: Any = world.connect(PlainClient())
    halved: Any = world.connect(PlainClient())
    halved.transport.write(b"\x16\x03\x01")
    world.turn(HANDSHAKE_TIMEOUT_S - 1)
    assert len(world.connections) == 2
    world.turn(2)
    assert world.connections == set()
    assert silent.ending is not None
    assert [line.rpartition(": ")[2] for line in world.complaints] == ["the TLS handshake has taken more than 30 s"] * 2


def test_a_connection_that_had_to_wait_has_the_same_time_for_its_handshake() -> None:
    world = TlsWorld(ConnectionAdmission(40_000))
    client = world.connect_tls()
    world.connect(PlainClient())
    world.turn(39)
    assert not client.is_up
    world.turn(2)
    assert client.is_up
    world.turn(HANDSHAKE_TIMEOUT_S - 2)
    assert len(world.connections) == 2
    world.turn(2)
    assert len(world.connections) == 1


def test_other_clients_are_served_beside_half_handshakes() -> None:
    world = TlsWorld()
    for _ in range(50):
        half: Any = world.connect(PlainClient())
        half.transport.write(b"\x16\x03\x01")
    client = world.connect_tls()
    client.send(make_request(1))
    world.turn()
    assert len(client.plain) == ANSWER_BYTES


def test_more_half_handshakes_than_a_bound_end_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkacompat.server.tls_server.MOST_HANDSHAKES", 3)
    hello = SSL.Connection(make_client_context(), None)
    hello.set_connect_state()
    with pytest.raises(SSL.WantReadError):
        hello.do_handshake()
    data = hello.bio_read(10_000)
    world = TlsWorld()
    halves: list[Any] = []
    for _ in range(5):
        halves.append(world.connect(PlainClient()))
        halves[-1].transport.write(data)
        world.turn()
    assert [half.ending is not None for half in halves] == [True, True, False, False, False]
    assert [line.rpartition(": ")[2] for line in world.complaints] == ["3 newer TLS handshakes are under way"] * 2
    client = world.connect_tls()
    client.send(make_request(1))
    world.turn()
    assert len(client.plain) == ANSWER_BYTES
    # The client's handshake has ended the third, and its end makes room again.
    assert len(world.connections) == 3


def test_a_client_cannot_negotiate_again() -> None:
    world = TlsWorld()
    client = world.connect_tls(version=SSL.TLS1_2_VERSION)
    client.session.renegotiate()
    client.is_up = False
    client.advance()
    world.turn()
    assert "no renegotiation" in client.alert


def test_only_the_enabled_version_is_spoken() -> None:
    world = TlsWorld(ssl_enabled_protocols="TLSv1.3")
    client = world.connect_tls(version=SSL.TLS1_2_VERSION)
    assert not client.is_up
    assert "the peer's TLS version is not in ssl.enabled.protocols" in world.complaints[0]


def test_a_timer_of_the_handshake_does_not_stay() -> None:
    world = TlsWorld()
    world.connect_tls()
    assert world.clock.getDelayedCalls() == []


def test_a_peer_that_does_not_read_the_messages_of_tls_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with endless KeyUpdates, each of which is answered."""
    world = TlsWorld()
    client = world.connect_tls()
    client.transport.pauseProducing()
    monkeypatch.setattr(TlsSession, "take_output", lambda _: b"x" * 100_000)
    for number in range(10):
        client.send(make_request(number))
        world.turn()
    assert world.connections == set()
    assert world.complaints[0].endswith("the peer does not read the messages of TLS")

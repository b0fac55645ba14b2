"""SCRAM: the vectors of RFC 5802 and 7677, Kafka's rules, and attacks."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

import pytest

from kafkacompat.security.principals import Principal
from kafkacompat.security.sasl.client import ClientLogin, ScramClient
from kafkacompat.security.sasl.mechanism import SaslError
from kafkacompat.security.sasl.scram import ScramServer, ScramStore, TokenLogin
from kafkacompat.security.scram import ScramCredential, ScramMechanism, derive_credential

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
ALICE = "alice"


def make_credential(
    mechanism: ScramMechanism, password: str, salt: bytes = b"salt", iterations: int = 4096
) -> ScramCredential:
    salted = hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)
    return derive_credential(mechanism, salt, salted, iterations)


def make_store(
    users: Mapping[str, ScramCredential], nonce: str = "server", token: TokenLogin | None = None
) -> ScramStore:
    return ScramStore(
        lambda _, user: users.get(user),
        lambda _, token_id: token if token_id == "token-1" else None,
        lambda: nonce,
        b"k" * 32,
    )


def exchange(server: ScramServer, login: ClientLogin, nonce: str = "client") -> None:
    client = ScramClient(login, nonce)
    final = client.evaluate(server.evaluate(client.begin()))
    assert final is not None
    assert client.evaluate(server.evaluate(final)) is None


def test_the_vector_of_rfc_7677() -> None:
    """The exchange of section 3: user "user", password "pencil"."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    server = ScramServer(
        SHA_256, make_store({"user": make_credential(SHA_256, "pencil", salt)}, nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    )
    first = server.evaluate(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = server.evaluate(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert server.principal == Principal("User", "user")


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_both_sides(mechanism: ScramMechanism) -> None:
    name = "a,b=c d"
    server = ScramServer(mechanism, make_store({name: make_credential(mechanism, "pässwörd")}))
    exchange(server, ClientLogin(mechanism.sasl_name, name, "pässwörd"))
    assert server.principal == Principal("User", name)


def test_a_token_makes_its_owner_the_principal() -> None:
    owner = Principal("User", "owner")
    token = TokenLogin(owner, make_credential(SHA_256, "hmac"), 5000)
    server = ScramServer(SHA_256, make_store({}, token=token))
    client = ScramClient(ClientLogin("SCRAM-SHA-256", "token-1", "hmac", by_token=True), "nonce")
    final = client.evaluate(server.evaluate(client.begin()))
    assert final is not None
    client.evaluate(server.evaluate(final))
    assert server.principal == owner._replace(by_token=True)
    assert server.expires_at_ms == 5000
    # Without the extension a token's id is the name of no user.
    server = ScramServer(SHA_256, make_store({}, token=token))
    with pytest.raises(SaslError, match="Invalid client credentials"):
        exchange(server, ClientLogin("SCRAM-SHA-256", "token-1", "hmac"))


def fail_with(server: ScramServer, messages: list[bytes]) -> SaslError:
    for message in messages[:-1]:
        server.evaluate(message)
    with pytest.raises(SaslError) as refused:
        server.evaluate(messages[-1])
    assert server.principal is None
    return refused.value


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (b"", "format"),
        (b"y,,n=alice,r=x", "format"),
        (b"p=tls-unique,,n=alice,r=x", "format"),
        (b"n,,n=alice", "format"),
        (b"n,,n=al,ice,r=x", "format"),
        (b"n,,n=alice,r=x,extension", "format"),
        (b"\xff" * 100, "format"),
        (b"n,a=bob,n=alice,r=x", "authorization id that is different"),
        (b"n,,n=" + b"a" * 100_000, "format"),
    ],
)
def test_bad_first_messages(first: bytes, reason: str) -> None:
    server = ScramServer(SHA_256, make_store({ALICE: make_credential(SHA_256, "pw")}))
    assert reason in str(fail_with(server, [first]))


@pytest.mark.parametrize(
    ("final", "reason"),
    [
        (b"", "format"),
        (b"c=biws,r=clientserver", "format"),
        (b"c=biws,r=client,p=AAAA", "Invalid client nonce"),  # CVE-2024-56128
        (b"c=biws,r=clientother,p=AAAA", "Invalid client nonce"),
        (b"c=biws,r=clientserverx,p=AAAA", "Invalid client nonce"),
        (b"c=eSws,r=clientserver,p=AAAA", "channel binding"),
        (b"c=biws,r=clientserver,p=", "Invalid client credentials"),
        (b"c=biws,r=clientserver,p=AAAA", "Invalid client credentials"),
        (b"c=biws,r=clientserver,p=" + base64.b64encode(bytes(32)), "Invalid client credentials"),
    ],
)
def test_bad_final_messages(final: bytes, reason: str) -> None:
    server = ScramServer(SHA_256, make_store({ALICE: make_credential(SHA_256, "pw")}))
    problem = fail_with(server, [b"n,,n=alice,r=client", final])
    assert reason in str(problem) and problem.client_message is None


def test_a_weak_credential_is_refused() -> None:
    server = ScramServer(SHA_256, make_store({ALICE: make_credential(SHA_256, "pw", iterations=4095)}))
    assert "4095 is less than the minimum 4096" in str(fail_with(server, [b"n,,n=alice,r=x"]))


def test_an_unknown_user_looks_like_a_known_one() -> None:
    """The same messages, of the same lengths, and the same salt for the same name; the failure comes with the proof."""
    salt = b"1kq2nz9ihiknapgeigk07i6ghj"
    known = {ALICE: make_credential(SHA_256, "pw", salt)}
    answers = {}
    for user in (ALICE, "mallory", "nobody"):
        server = ScramServer(SHA_256, make_store(known))
        client = ScramClient(ClientLogin("SCRAM-SHA-256", user, "wrong"), "client")
        answers[user] = server.evaluate(client.begin())
        final = client.evaluate(answers[user])
        assert final is not None
        with pytest.raises(SaslError, match="Invalid client credentials"):
            server.evaluate(final)
        again = ScramServer(SHA_256, make_store(known)).evaluate(client.begin())
        assert again == answers[user]
    assert len(set(answers.values())) == 3
    assert abs(len(answers["mallory"]) - len(answers[ALICE])) <= 4
    assert all(b",i=4096" in answer for answer in answers.values())


def test_a_decoy_cannot_be_used() -> None:
    """Even its own keys prove nothing: otherwise a leaked decoy key would let in users that do not exist."""
    store = make_store({})
    decoy = store.make_decoy(SHA_256, "mallory")
    server = ScramServer(SHA_256, store)
    assert decoy.salt in base64.b64decode(server.evaluate(b"n,,n=mallory,r=client").split(b"s=")[1].split(b",")[0])


def test_no_secret_is_shown() -> None:
    login = ClientLogin("SCRAM-SHA-256", "alice", "alice-secret")
    assert "alice-secret" not in repr(login)
    client = login.start(lambda: "nonce")
    assert b"alice-secret" not in client.begin()


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (b"r=other,s=AAAA,i=4096", "does not continue"),
        (b"r=client,s=AAAA,i=4096", "does not continue"),
        (b"r=clientx,s=AAAA,i=1", "out of bounds"),
        (b"r=clientx,s=AAAA,i=999999999", "out of bounds"),
        (b"r=clientx,s=A,i=4096", "malformed"),
        (b"nonsense", "malformed"),
    ],
)
def test_a_broker_that_cannot_be_trusted(challenge: bytes, reason: str) -> None:
    client = ScramClient(ClientLogin("SCRAM-SHA-256", "broker", "pw"), "client")
    client.begin()
    with pytest.raises(SaslError, match=reason):
        client.evaluate(challenge)


def test_a_broker_without_the_credential_is_not_accepted() -> None:
    client = ScramClient(ClientLogin("SCRAM-SHA-256", "broker", "pw"), "client")
    client.begin()
    client.evaluate(b"r=clientserver,s=AAAA,i=4096")
    with pytest.raises(SaslError, match="has not proved"):
        client.evaluate(b"v=" + base64.b64encode(bytes(32)))

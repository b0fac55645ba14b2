"""How a broker, or a command, authenticates itself, by Kafka's properties."""

from __future__ import annotations

import pytest

from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.security.sasl.client import ClientLogin
from kafkacompat.security.sasl.login_settings import BearerSettings, RefreshRules, read_login_settings
from kafkacompat.security.sasl.token_requests import TokenEndpoint, TokenFile, UnsecuredClaims

KAFKAS = "org.apache.kafka.common.security"
MODULE = f"{KAFKAS}.oauthbearer.OAuthBearerLoginModule required"
LISTENER = """
node.id=1
listeners=EXT://127.0.0.1:2
listener.security.protocol.map=EXT:SASL_PLAINTEXT
sasl.enabled.mechanisms=OAUTHBEARER
"""
URL = "sasl.oauthbearer.token.endpoint.url=https://issuer/token\n"


def read(properties: str, mechanism: str = "OAUTHBEARER", listener: str | None = "EXT") -> ClientLogin | BearerSettings:
    config = BrokerConfig.load(LISTENER + properties)
    assert not config.unknown_names and not config.names_without_effect
    return read_login_settings(config, listener, mechanism)


def read_bearer(properties: str) -> BearerSettings:
    settings = read(properties)
    assert isinstance(settings, BearerSettings)
    return settings


def catch(properties: str, mechanism: str = "OAUTHBEARER") -> str:
    with pytest.raises(ConfigError) as problem:
        read(properties, mechanism)
    return str(problem.value)


@pytest.mark.parametrize("prefix", ["", "listener.name.ext.", "listener.name.ext.oauthbearer."])
def test_a_provider_by_options_of_the_login_module(prefix: str) -> None:
    jaas = f'{MODULE} clientId="me" clientSecret="hush" scope="a b" extension_x="1" ssl.truststore.type="PEM"'
    jaas += ' ssl.truststore.location="/ca.pem"'
    settings = read_bearer(f"{prefix}sasl.jaas.config={jaas};\n{prefix}{URL}{prefix}sasl.login.retry.backoff.ms=200\n")
    assert isinstance(settings.origin, TokenEndpoint)
    origin = settings.origin
    assert (origin.url, origin.client_id, origin.client_secret) == ("https://issuer/token", "me", "hush")
    assert (origin.scope, settings.extensions, settings.backoff_s) == ("a b", {"x": "1"}, 0.2)
    assert origin.trust_store is not None
    assert (origin.trust_store.kind, origin.trust_store.location) == ("PEM", "/ca.pem")
    assert "hush" not in repr(settings)


def test_a_provider_by_properties_which_count_before_options() -> None:
    """KIP-1139."""
    text = URL + "sasl.oauthbearer.client.credentials.client.id=id\nsasl.oauthbearer.scope=s\n"
    text += "sasl.oauthbearer.client.credentials.client.secret=hush\nsasl.oauthbearer.sub.claim.name=name\n"
    text += "sasl.login.connect.timeout.ms=1500\nsasl.login.read.timeout.ms=2500\n"
    text += "sasl.login.refresh.window.factor=0.6\nsasl.login.refresh.window.jitter=0.1\n"
    text += "sasl.login.refresh.min.period.seconds=7\nsasl.login.refresh.buffer.seconds=8\n"
    expected = BearerSettings(
        TokenEndpoint("https://issuer/token", "id", "hush", "s", 1.5, 2.5), "name", {}, RefreshRules(0.6, 0.1, 7, 8)
    )
    assert read_bearer(text) == expected
    jaas = f'sasl.jaas.config={MODULE} clientId="other" clientSecret="other" scope="other";\n'
    assert read_bearer(text + jaas) == expected


def test_a_token_in_a_file() -> None:
    assert read_bearer("sasl.oauthbearer.token.endpoint.url=file:///a%20b").origin == TokenFile("/a b")


def test_unsecured_tokens_as_kafka_describes_them() -> None:
    options = 'unsecuredLoginStringClaim_sub="b" unsecuredLoginListClaim_scope="|x|y" unsecuredLoginNumberClaim_n="2.5"'
    options += (
        ' unsecuredLoginLifetimeSeconds="60" unsecuredLoginExtension_traceId="1" unsecuredLoginPrincipalClaimName="p"'
    )
    settings = read_bearer(f"sasl.jaas.config={MODULE} {options};")
    assert settings.origin == UnsecuredClaims({"sub": "b", "scope": ["x", "y"], "n": 2.5}, 60)
    assert (settings.subject_claim, settings.extensions) == ("p", {"traceId": "1"})


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ("", "there are no tokens for a login by OAUTHBEARER: set sasl.oauthbearer.token.endpoint.url"),
        (f"sasl.jaas.config={MODULE};", "for trials only, make unsecured tokens by unsecuredLoginStringClaim_sub"),
        (URL, "client.id is not set, and listener.name.ext.oauthbearer.sasl.jaas.config has no option clientId"),
        (URL + f'sasl.jaas.config={MODULE} clientId="a";', "client.secret is not set"),
        ("sasl.oauthbearer.token.endpoint.url=ftp://x", "it takes a URL of file, http, https"),
        ("sasl.oauthbearer.token.endpoint.url=https://me:hush@x/", "a URL without a user and a password"),
        ("sasl.login.callback.handler.class=com.acme.Vault", "as no class is loaded by its name: it takes org.apache"),
        (f"sasl.login.callback.handler.class={KAFKAS}.oauthbearer.OAuthBearerLoginCallbackHandler", "needs sasl.oauth"),
        (
            f"sasl.oauthbearer.jwt.retriever.class={KAFKAS}.oauthbearer.JwtBearerJwtRetriever",
            "JwtBearerJwtRetriever is not served",
        ),
        (f'sasl.jaas.config={MODULE} unsecuredLoginStringClaim_exp="9";', "sets the claim exp of unsecured tokens"),
        (f'sasl.jaas.config={MODULE} unsecuredLoginNumberClaim_n="hush";', "unsecuredLoginNumberClaim_n that is no n"),
        (f'sasl.jaas.config={MODULE} unsecuredLoginExtension_auth="1";', "unsecuredLoginExtension_auth, which is no"),
        (
            URL + f'sasl.jaas.config={MODULE} clientId="a" clientSecret="hush" ssl.keystore.location="/k";',
            "has a key store for the identity provider, which is not served",
        ),
    ],
)
def test_what_gives_no_login(properties: str, words: str) -> None:
    text = catch(properties)
    assert words in text and "hush" not in text


def test_names_and_passwords() -> None:
    scram = f"sasl.jaas.config={KAFKAS}.scram.ScramLoginModule required username=a password=b"
    assert read(f"{scram};", "SCRAM-SHA-256", None) == ClientLogin("SCRAM-SHA-256", "a", "b")
    assert read(f'{scram} tokenauth="true";', "SCRAM-SHA-512") == ClientLogin("SCRAM-SHA-512", "a", "b", by_token=True)
    assert "sasl.jaas.config has no username and password for a login by PLAIN" in catch(f"{scram};", "PLAIN")
    assert "the SASL mechanism GSSAPI is not served: set one of PLAIN, SCRAM" in catch("", "GSSAPI")

"""SASL properties of one mechanism of one listener."""

from __future__ import annotations

import pytest

from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.security.sasl.settings import SignedRules, read_sasl_settings

LISTENER = """
node.id=1
process.roles=broker,controller
listeners=PLAINTEXT://127.0.0.1:1,EXT://127.0.0.1:2
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,EXT:SASL_PLAINTEXT
"""
OAUTH = LISTENER + "sasl.enabled.mechanisms=OAUTHBEARER\nsasl.oauthbearer.jwks.endpoint.url=file:///keys\n"


def read_oauth(properties: str) -> SignedRules:
    config = BrokerConfig.load(OAUTH + properties)
    assert not list(config.unknown_names)
    oauth = read_sasl_settings(config, "EXT").oauth
    assert isinstance(oauth, SignedRules)
    return oauth


@pytest.mark.parametrize("prefix", ["", "listener.name.ext.", "listener.name.ext.oauthbearer."])
def test_rules_for_tokens_by_listener_and_mechanism(prefix: str) -> None:
    names = "sasl.oauthbearer.expected.audience=kafka", "sasl.oauthbearer.expected.issuer=me"
    oauth = read_oauth("".join(f"{prefix}{name}\n" for name in names))
    assert (oauth.audience, oauth.issuer, oauth.clock_skew_s, oauth.subject_claim) == (("kafka",), "me", 30, "sub")


def test_the_most_specific_rule_counts() -> None:
    oauth = read_oauth(
        "sasl.oauthbearer.clock.skew.seconds=1\nlistener.name.ext.oauthbearer.sasl.oauthbearer.clock.skew.seconds=2\n"
    )
    assert oauth.clock_skew_s == 2


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "PLAIN"])
def test_no_class_of_a_user_checks_credentials(mechanism: str) -> None:
    name = f"listener.name.ext.{mechanism.lower()}.sasl.server.callback.handler.class"
    config = BrokerConfig.load(f"{LISTENER}sasl.enabled.mechanisms={mechanism}\n{name}=com.acme.Vault\n")
    with pytest.raises(ConfigError, match=r"Vault is not served, as no class is loaded by its name: remove it"):
        read_sasl_settings(config, "EXT")

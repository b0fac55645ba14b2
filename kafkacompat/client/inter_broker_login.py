"""How this broker authenticates itself at other brokers, by the properties of the listener between brokers."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from kafkacompat.config.properties import ConfigError
from kafkacompat.config.sasl import find_inter_broker_objection

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.security.sasl.bearer_login import BearerLogin, Post
    from kafkacompat.security.sasl.client import ClientLogin
    from kafkacompat.security.sasl.token_requests import TokenEndpoint


def find_inter_broker_login(
    config: BrokerConfig, listener_name: str, reactor: Any, rng: Random
) -> ClientLogin | BearerLogin | None:
    """Return the login, None for a listener without SASL; raises ConfigError. Tokens are retrieved by *reactor*."""
    listener = next(listener for listener in config.listeners if listener.name == listener_name.upper())
    if not listener.has_sasl:
        return None
    if objection := find_inter_broker_objection(config, listener.name):
        raise ConfigError(objection)
    # A broker without such a listener does not pay for these modules.
    from kafkacompat.security.sasl.client import ClientLogin
    from kafkacompat.security.sasl.login_settings import read_login_settings

    mechanism = config.string("sasl.mechanism.inter.broker.protocol")
    try:
        settings = read_login_settings(config, listener.name, mechanism)
    except ConfigError as problem:
        raise ConfigError(f"listener {listener.name}: {problem}") from None
    if isinstance(settings, ClientLogin):
        return settings
    from kafkacompat.security.sasl.bearer_login import BearerLogin

    def post_with(endpoint: TokenEndpoint) -> Post:
        from kafkacompat.security.sasl.http_fetch import make_post

        return make_post(reactor, endpoint)

    return BearerLogin(settings, post_with, reactor, rng)

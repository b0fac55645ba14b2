"""Checks of the web page and of /v1/test: they need a listener, and a login where clients have to authenticate themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkacompat.config.broker import BrokerConfig

ENABLE = "kafkacompat.ui.enable"
LOGINS = "set kafkacompat.http.scram.enable=true or kafkacompat.http.token.file"


def find_web_page_objection(config: BrokerConfig) -> str | None:
    """Return the sentence that rejects the web page of a configuration, or None."""
    if not config.bool(ENABLE):
        return None
    if config.optional_string("kafkacompat.http.listener") is None:
        return f"{ENABLE}=true needs an address: set kafkacompat.http.listener=127.0.0.1:9464"
    return find_login_objection(config, f"{ENABLE}=true")


def find_login_objection(config: BrokerConfig, subject: str) -> str | None:
    """Return the sentence that rejects *subject* without a login over HTTP on a broker with users, or None."""
    has_logins = config.bool("kafkacompat.http.scram.enable") or config.value("kafkacompat.http.token.file") is not None
    reason = None if has_logins else _find_users(config)
    return None if reason is None else f"{subject} needs a login, as {reason}: {LOGINS}"


def _find_users(config: BrokerConfig) -> str | None:
    """Return the reason why clients of this broker need a login; None if they need none."""
    if config.string("authorizer.class.name"):
        return "the broker has an authorizer"
    for listener in config.listeners:
        client_auth = config.listener_value(listener.name, "ssl.client.auth")
        if listener.has_sasl or (listener.has_tls and client_auth == "required"):
            return f"clients of the listener {listener.name} have to authenticate themselves"
    if config.required_listeners:
        return "listeners serve only clients of instances"
    return None

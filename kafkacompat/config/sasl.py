"""Checks of the SASL properties that need no login module: which mechanisms are served, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkacompat.config.broker import BrokerConfig

SERVED_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


def find_sasl_objection(config: BrokerConfig) -> str | None:
    """Return the sentence that rejects the mechanisms of the listeners, or None."""
    for listener in config.listeners:
        if not listener.has_sasl:
            continue
        mechanisms = config.listener_value(listener.name, "sasl.enabled.mechanisms")
        assert isinstance(mechanisms, tuple)
        unserved = [mechanism for mechanism in mechanisms if mechanism not in SERVED_MECHANISMS]
        if unserved or not mechanisms:
            return (
                f"listeners={listener.entry} has {listener.protocol} with sasl.enabled.mechanisms={','.join(mechanisms)}:"
                f" {unserved[0] if unserved else 'nothing'} is not served, so set some of {', '.join(SERVED_MECHANISMS)}"
            )
    return None


def find_inter_broker_objection(config: BrokerConfig, listener_name: str) -> str | None:
    """Return the sentence that rejects the mechanism by which brokers of a cluster authenticate themselves, or None."""
    listener = next(listener for listener in config.listeners if listener.name == listener_name)
    mechanism = config.string("sasl.mechanism.inter.broker.protocol")
    if not listener.has_sasl or mechanism in SERVED_MECHANISMS:
        return None
    return f"sasl.mechanism.inter.broker.protocol={mechanism} is not served: set one of {', '.join(SERVED_MECHANISMS)}"

"""The advertised addresses of a cluster's brokers, as they work from this machine."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import ip_address

from kafkacompat.cli.remote.doctor.stages import (
    CONNECT,
    RESOLVE,
    DoctorAccess,
    StageError,
    format_address,
    open_connection,
)
from kafkacompat.cli.remote.doctor.verdicts import Verdict, accept, fail, warn
from kafkacompat.cli.remote.doctor.wire_connection import ExchangeError, WireConnection
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker

STAGE = "advertised"
CHECKS_AT_ONCE = 16
MOST_BROKERS = 200
_SET_ADVERTISED = "set advertised.listeners on that broker to an address that clients reach"


def request_brokers(connection: WireConnection) -> MetadataResponse:
    """Return the brokers and the cluster's id; raises ExchangeError."""
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    return connection.request(request, MetadataResponse, last=12)


def judge_brokers(access: DoctorAccess, metadata: MetadataResponse, address: str) -> Iterator[Verdict]:
    """Yield a verdict for each broker; *address* is the one at which the doctor reached the first broker."""
    brokers = sorted(metadata.brokers, key=lambda broker: broker.node_id)
    judge = partial(judge_broker, access, metadata.cluster_id, is_here=is_loopback(address))
    with ThreadPoolExecutor(CHECKS_AT_ONCE) as pool:
        yield from pool.map(judge, brokers[:MOST_BROKERS])
    if len(brokers) > MOST_BROKERS:
        left = len(brokers) - MOST_BROKERS
        yield warn(STAGE, f"{left} more brokers were not tried", "run the doctor on one of them")


def judge_broker(
    access: DoctorAccess, cluster_id: str | None, broker: MetadataResponseBroker, *, is_here: bool
) -> Verdict:
    """Connect to a broker at its advertised address; *is_here* says that the cluster is on this machine."""
    name = f"broker {broker.node_id} at {format_address(broker.host, broker.port)}"
    is_foreign_loopback = is_loopback(broker.host) and not is_here
    try:
        connection = open_connection(access, broker.host, broker.port)
    except StageError as problem:
        if is_foreign_loopback:
            return fail(
                STAGE, f"{name}: this address means each client's own machine, not the broker's", _SET_ADVERTISED
            )
        advice = _SET_ADVERTISED if problem.stage in (RESOLVE, CONNECT) else problem.advice
        return fail(STAGE, f"{name}: {problem.text}", advice)
    try:
        reached_id = request_brokers(connection).cluster_id
    except ExchangeError as problem:
        return fail(STAGE, f"{name}: it {problem}", "check that the address leads to this broker")
    finally:
        connection.close()
    if reached_id != cluster_id:
        return fail(
            STAGE, f"{name}: another cluster answers there, {reached_id} instead of {cluster_id}", _SET_ADVERTISED
        )
    if is_foreign_loopback:
        return warn(STAGE, f"{name}: it answers, but only clients on this machine reach it so", _SET_ADVERTISED)
    return accept(STAGE, f"{name} answers")


def is_loopback(host: str) -> bool:
    """Return whether a host means the machine of the client itself."""
    try:
        address = ip_address(host)
    except ValueError:
        return host.rstrip(".").lower() in ("localhost", "localhost.localdomain")
    return address.is_loopback or address.is_unspecified

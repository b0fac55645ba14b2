"""The examination of a broker: all checks in order, up to the first that the next ones need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafkacompat.cli.remote.doctor.advertised import STAGE as ADVERTISED
from kafkacompat.cli.remote.doctor.advertised import judge_brokers, request_brokers
from kafkacompat.cli.remote.doctor.record import try_record
from kafkacompat.cli.remote.doctor.releases import describe_release
from kafkacompat.cli.remote.doctor.stages import (
    CONNECT,
    LOGIN,
    RESOLVE,
    VERSIONS,
    DoctorAccess,
    Reached,
    StageError,
    connect,
    find_required_login,
    format_address,
    log_in,
    request_versions,
    resolve,
    start_tls,
)
from kafkacompat.cli.remote.doctor.verdicts import CheckOutcome, Verdict, accept, fail, warn
from kafkacompat.cli.remote.doctor.wire_connection import ExchangeError

if TYPE_CHECKING:
    from kafkacompat.cli.remote.doctor.wire_connection import WireConnection
    from kafkacompat.wire.apis.metadata import MetadataResponse


def examine(access: DoctorAccess, host: str, port: int, topic: str | None) -> Iterator[Verdict]:
    """Yield the verdicts on a broker. *topic* is the name of the topic for the record; None tries no record."""
    try:
        yield from _examine(access, host, port, topic)
    except StageError as problem:
        yield fail(problem.stage, problem.text, problem.advice)


def _examine(access: DoctorAccess, host: str, port: int, topic: str | None) -> Iterator[Verdict]:
    addresses = resolve(access, host, port)
    yield accept(RESOLVE, f"{host} is {', '.join(addresses)}" if addresses != [host] else f"{host} is an address")
    reached = connect(access, addresses, port)
    yield _judge_connection(reached, port)
    try:
        stream = start_tls(access, reached, host, port)
    except StageError as problem:
        yield from _show_certificate(access, reached, host, port)
        raise problem from None
    if access.security.tls is not None:
        from kafkacompat.cli.remote.doctor.certificates import judge_certificate

        yield judge_certificate(access, reached, host, port)
    connection = request_versions(access, reached, stream, port)
    try:
        yield accept(VERSIONS, describe_release(connection.served))
        if access.security.login is not None:
            yield accept(LOGIN, f"the broker accepts the client by {log_in(access, connection)}")
        metadata = _request_brokers(access, connection, reached, host, port)
    finally:
        connection.close()
    verdicts = list(judge_brokers(access, metadata, reached.address))
    yield from verdicts
    if topic is not None and any(verdict.outcome is not CheckOutcome.FAILED for verdict in verdicts):
        yield from try_record(access, host, port, topic)


def _judge_connection(reached: Reached, port: int) -> Verdict:
    text = f"{format_address(reached.address, port)} accepts connections"
    if not reached.refused:
        return accept(CONNECT, text)
    refused = "; ".join(
        f"{format_address(address, port)} does not: {reason}" for address, reason in reached.refused.items()
    )
    advice = (
        "clients try the addresses in this order: let the broker listen on each, or remove the name's other addresses"
    )
    return warn(CONNECT, f"{text}, but {refused}", advice)


def _show_certificate(access: DoctorAccess, reached: Reached, host: str, port: int) -> Iterator[Verdict]:
    """Yield what the certificate says of itself, after a handshake that failed."""
    from kafkacompat.cli.remote.doctor.certificates import describe_certificate, find_certificate

    certificate = find_certificate(access, reached, host, port)
    if certificate is not None:
        yield accept("certificate", f"the broker shows the {describe_certificate(certificate)}")


def _request_brokers(
    access: DoctorAccess, connection: WireConnection, reached: Reached, host: str, port: int
) -> MetadataResponse:
    """Return the brokers; raises StageError."""
    try:
        return request_brokers(connection)
    except ExchangeError as problem:
        if access.security.login is None:
            required = find_required_login(access, reached, host, port)
            if required is not None:
                raise required from None
        raise StageError(
            ADVERTISED, f"the broker {problem} instead of returning the cluster's brokers", "read the broker's log"
        ) from None

"""Users with SCRAM passwords: listed, created and deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkacompat.cli.passwords import salt_password
from kafkacompat.cli.remote.errors import RemoteError, explain_refusal, suggest_name
from kafkacompat.cli.remote.outcomes import Outcome, write_outcomes
from kafkacompat.security.scram import SCRAM_MECHANISMS, ScramMechanism
from kafkacompat.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafkacompat.wire.apis.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster
    from kafkacompat.cli.remote.output import Output


def list_users(cluster: RemoteCluster, output: Output) -> None:
    """Write all users, a row for each mechanism."""
    rows = [
        {"user": user, "mechanism": _name_mechanism(code), "iterations": iterations}
        for user, mechanisms in _read_users(cluster).items()
        for code, iterations in sorted(mechanisms.items())
    ]
    output.write_rows(rows, "There are no users with SCRAM passwords")


def _read_users(cluster: RemoteCluster) -> dict[str, dict[int, int]]:
    """Return the iterations of all users by mechanism; raises RemoteError."""
    request = DescribeUserScramCredentialsRequest(users=None)
    response = cluster.request_controller(request, DescribeUserScramCredentialsResponse)
    if response.error_code:
        reason = explain_refusal(response.error_code, response.error_message)
        raise RemoteError(f"the users are not listed: {reason}")
    return {
        result.user: {info.mechanism: info.iterations for info in result.credential_infos}
        for result in sorted(response.results, key=lambda result: result.user)
        if not result.error_code
    }


def _name_mechanism(code: int) -> str:
    names = {int(mechanism): mechanism.sasl_name for mechanism in ScramMechanism}
    return names.get(code, f"UNKNOWN({code})")


def create_user(
    cluster: RemoteCluster, output: Output, name: str, password: str, mechanism: str, iterations: int
) -> int:
    """Set the password of a user; returns the exit code."""
    scram = SCRAM_MECHANISMS[mechanism]
    salt, salted = salt_password(password, scram, iterations)
    upsertion = ScramCredentialUpsertion(
        name=name, mechanism=scram, iterations=iterations, salt=salt, salted_password=salted
    )
    outcome = _alter(cluster, AlterUserScramCredentialsRequest(upsertions=[upsertion]))
    return write_outcomes(output, "user", "created", [outcome])


def delete_users(cluster: RemoteCluster, output: Output, names: Sequence[str], mechanism: str | None) -> int:
    """Delete the passwords of users, of one mechanism or of all; returns the exit code."""
    users = _read_users(cluster)
    outcomes = []
    for name in names:
        if name not in users:
            outcomes.append(Outcome(name, f"there is no user {name}{suggest_name(name, users)}"))
            continue
        # A request may change a user once, whatever the mechanism.
        codes = sorted(users[name]) if mechanism is None else [int(SCRAM_MECHANISMS[mechanism])]
        deletions = (ScramCredentialDeletion(name=name, mechanism=code) for code in codes)
        results = [_alter(cluster, AlterUserScramCredentialsRequest(deletions=[deletion])) for deletion in deletions]
        outcomes.append(next((result for result in results if result.problem is not None), Outcome(name)))
    return write_outcomes(output, "user", "deleted", outcomes)


def _alter(cluster: RemoteCluster, request: AlterUserScramCredentialsRequest) -> Outcome:
    """Send a request that changes one user."""
    (result,) = cluster.request_controller(request, AlterUserScramCredentialsResponse).results
    problem = explain_refusal(result.error_code, result.error_message) if result.error_code else None
    return Outcome(result.user, problem)

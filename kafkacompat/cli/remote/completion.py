"""Names that a shell completes, read from the broker of --bootstrap-server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from kafkacompat.cli.remote.cluster import RemoteCluster

PATIENCE_S = 1.0
"""How long a shell waits for names."""

ListNames = Callable[["RemoteCluster"], Iterable[str]]


def complete_topics(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the topics whose names begin with *incomplete*."""
    return _complete(context, incomplete, lambda cluster: (topic.name or "" for topic in cluster.read_topics()))


def complete_groups(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the groups whose ids begin with *incomplete*."""

    def list_groups(cluster: RemoteCluster) -> Iterable[str]:
        from kafkacompat.cli.remote.administration.group_listing import list_groups

        return (group.group_id for group in list_groups(cluster))

    return _complete(context, incomplete, list_groups)


def _complete(context: click.Context, incomplete: str, list_names: ListNames) -> list[CompletionItem]:
    """Return names; none where the broker does not answer, as a shell has no place for an error."""
    from click.shell_completion import CompletionItem

    from kafkacompat.cli.remote.errors import RemoteError
    from kafkacompat.cli.requests import NoResponseError

    try:
        with _connect(context) as cluster:
            names = sorted(name for name in list_names(cluster) if name.startswith(incomplete))
    except (NoResponseError, RemoteError, ValueError):
        return []
    return [CompletionItem(name) for name in names]


def _connect(context: click.Context) -> RemoteCluster:
    """Connect to the broker that the options before the cursor or the environment name; raises as connect_cluster does."""
    from kafkacompat.cli.remote.cluster import connect_cluster
    from kafkacompat.cli.remote.options import Target

    target = Target(context.params.get("bootstrap") or "", context.params.get("command_config"))
    return connect_cluster(target, connect_timeout_s=PATIENCE_S, answer_timeout_s=PATIENCE_S)

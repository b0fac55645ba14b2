"""docs/configuration.md: `python -m compat_tests.documentation.configuration_page` writes the tables of properties into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compat_tests.documentation.links import ROOT
from compat_tests.pages import render_table, replace_section
from kafkacompat.config.development import DEVELOPMENT_DEFAULTS
from kafkacompat.config.properties import Property, parse_table
from kafkacompat.config.tables import authorizer, cluster, groups, instances, log, security, server, topics, zookeeper
from kafkacompat.config.topic_defaults import TOPIC_CONFIG_SYNONYMS
from kafkacompat.config.values import parse_rule

PAGE = ROOT / "docs" / "configuration.md"
BEGIN, END = "<!-- configuration: begin -->", "<!-- configuration: end -->"

BROKER_TABLES = {
    "The node, its listeners and requests": server.TABLE,
    "Logs": log.TABLE,
    "Groups and transactions": groups.TABLE,
    "Replicas, controllers, tiered storage": cluster.TABLE,
    "ZooKeeper": zookeeper.TABLE,
    "TLS, SASL and tokens": security.TABLE,
    "Authorizers and the audit log": authorizer.TABLE,
}
HEAD = ("name", "type", "default", "values", "changes", "meaning")
TOPIC_HEAD = ("name", "type", "default", "values", "meaning")
NO_EFFECT = "**Accepted, without effect here:**"


def render_tables() -> str:
    """Render the properties of brokers by subject, then the configs of topics, groups, client metrics and instances."""
    parts = [_render_subject(title, table) for title, table in BROKER_TABLES.items()]
    parts += [
        _render_subject("Topics", topics.TOPICS, of_topics=True),
        _render_subject("Groups, by `kafka-configs --entity-type groups`", topics.GROUPS, of_topics=True),
        _render_subject("Client metrics subscriptions", topics.CLIENT_METRICS, of_topics=True),
        _render_subject("Instances", instances.INSTANCES, of_topics=True),
    ]
    # A blank line ends the comment that the section follows.
    return "".join(["\n", *parts, "\n"])


def _render_subject(title: str, table: str, *, of_topics: bool = False) -> str:
    rows = list(parse_table(table))
    used = [row for row in rows if row.used or "O" in row.flags]
    unused = [row for row in rows if row not in used]
    parts = [f"\n## {title}\n"]
    if used:
        parts.append(f"\n{_render_rows(used, of_topics=of_topics)}")
    if unused:
        parts.append(f"\n{NO_EFFECT}\n\n{_render_rows(unused, of_topics=of_topics)}")
    return "".join(parts)


def _render_rows(rows: Sequence[Property], *, of_topics: bool) -> str:
    if of_topics:
        return render_table(TOPIC_HEAD, [_topic_cells(row) for row in rows])
    return render_table(HEAD, [_broker_cells(row) for row in rows])


def _broker_cells(row: Property) -> tuple[str, ...]:
    changes = "one broker" if row.per_broker else "yes" if row.dynamic else "no"
    return f"`{row.name}`", row.kind, "; ".join(_broker_defaults(row)), _values(row), changes, row.text


def _broker_defaults(row: Property) -> Iterator[str]:
    yield _show(row.default)
    if row.name in DEVELOPMENT_DEFAULTS and DEVELOPMENT_DEFAULTS[row.name] != row.default:
        yield f"`{DEVELOPMENT_DEFAULTS[row.name]}` without a file"


def _topic_cells(row: Property) -> tuple[str, ...]:
    synonyms = [f"`{synonym.name}`" for synonym in TOPIC_CONFIG_SYNONYMS.get(row.name, ())]
    default = f"{', '.join(synonyms)} of the broker" if synonyms else _show(row.default)
    return f"`{row.name}`", row.kind, default, _values(row), row.text


def _show(value: str | None) -> str:
    return "none" if value is None else f"`{value}`" if value else "empty"


def _values(row: Property) -> str:
    return parse_rule(row.kind, row.allowed).words


def write_tables(page: str) -> str:
    """Return the page with the present tables."""
    return replace_section(page, BEGIN, END, render_tables())


if __name__ == "__main__":
    PAGE.write_text(write_tables(PAGE.read_text()))

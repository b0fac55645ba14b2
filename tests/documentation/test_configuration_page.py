"""docs/configuration.md has every property of the tables."""

from __future__ import annotations

from compat_tests.documentation.configuration_page import PAGE, write_tables
from kafkacompat.config import PROPERTIES, TOPIC_CONFIGS


def test_the_page_has_the_tables() -> None:
    """If this fails, run `python -m compat_tests.documentation.configuration_page`."""
    page = PAGE.read_text()
    assert write_tables(page) == page


def test_the_page_tells_what_has_no_effect() -> None:
    page = PAGE.read_text()
    assert all(f"| `{name}` | {row.kind} |" in page for name, row in {**PROPERTIES, **TOPIC_CONFIGS}.items())
    logs = page.partition("\n## Logs\n")[2].partition("\n## ")[0]
    used, _, unused = logs.partition("**Accepted, without effect here:**")
    assert "| `log.roll.ms` | long | none |  | yes |" in used
    assert "| `log.preallocate` |" in unused
    assert "`3000`; `0` without a file" in page


def test_the_page_of_differences_has_each_property_that_kafka_does_not_have() -> None:
    differences = PAGE.with_name("DIFFERENCES.md").read_text()
    own = [name for name in PROPERTIES if name.startswith("kafkacompat.")]
    assert [name for name in own if f"`{name}`" not in differences] == []

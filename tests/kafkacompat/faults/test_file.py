"""A YAML file of rules, and the sentences about wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacompat.config import ConfigError
from kafkacompat.faults import Faults
from kafkacompat.faults.file import MAX_FILE_BYTES, load_faults


def load(folder: Path, text: str | bytes) -> Faults:
    path = folder / "faults.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    faults = Faults()
    load_faults(path, faults)
    return faults


def test_a_file_has_rules_and_a_seed(tmp_path: Path) -> None:
    faults = load(
        tmp_path,
        """
rules:
  - api: Produce
    versions: 9
    topic: orders
    error: NOT_LEADER_OR_FOLLOWER
    times: 2
  - {api: [Fetch, ListOffsets], delay_ms: 50, share: 0.5}
  - drop: true
seed: 7
""",
    )
    assert faults.seed == 7
    counts = {"matched": 0, "applied": 0}
    assert faults.list() == [
        {
            **{
                "id": 1,
                "api": "Produce",
                "versions": "9",
                "topic": "orders",
                "error": "NOT_LEADER_OR_FOLLOWER",
                "times": 2,
            },
            **counts,
        },
        {"id": 2, "api": ["Fetch", "ListOffsets"], "delay_ms": 50, "share": 0.5, **counts},
        {"id": 3, "drop": True, **counts},
    ]


@pytest.mark.parametrize("text", ["rules: []", "rules:", "seed: 3"])
def test_a_file_may_have_no_rules(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text).list() == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "faults.yaml is empty: a file without rules has the key rules"),
        ("- drop: true", "line 1: the file takes keys with values"),
        ("rule: []", "line 1: rule is not known: the keys are rules and seed"),
        ("rule:\n- drop: true", "line 1: rule is not known"),
        ("rules: 3", "line 1: rules takes a list of rules"),
        ("rules:\n- 3", "line 2: a rule takes keys with values"),
        ("rules:\n- drop: true\n  drop: true", "line 3: drop is there twice"),
        ("rules:\n- drop: true\n- api: X\n  drop: true", "line 3: api=X: no broker serves an API of this name"),
        ("rules:\n- drop: {a: b}", "line 2: drop takes a value or a list of values"),
        ("rules:\n- [a]: b", "line 2: a key of a rule takes a text"),
        ("rules:\n- 2020-01-01: true", "line 2: '2020-01-01' is no field of a rule"),
        ("rules:\n- drop: 2020-01-01", "line 2: drop=.*: it takes true"),
        ("rules:\n- drop: yes: no", "line 2: mapping values are not allowed here"),
        ("rules:\n- drop: !!python/object:os.system x", "line 2: drop: could not determine a constructor"),
        ("rules:\n- drop: 2020-99-99", "line 2: drop: it is not valid"),
        ("seed: x", "line 1: seed takes a whole number"),
        ("[" * 5000, "faults.yaml"),
        (b"\xff\xfe\xff", "faults.yaml is not valid YAML"),
        (b" " * (MAX_FILE_BYTES + 1), f"faults.yaml has more than {MAX_FILE_BYTES} bytes"),
    ],
)
def test_a_wrong_file_is_named_with_its_line(tmp_path: Path, text: str | bytes, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load(tmp_path, text)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--faults .*missing\.yaml cannot be read: there is no such file"):
        load_faults(tmp_path / "missing.yaml", Faults())

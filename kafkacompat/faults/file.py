"""A YAML file of rules, for `kafkacompat serve --faults`.

====================================  =================================================
seed: 7                               the seed of random shares; 0 without it
rules:                                the rules, in order
  - api: Produce                      a rule: the fields of docs/testing/faults.md
    topic: orders
    error: NOT_LEADER_OR_FOLLOWER
====================================  =================================================

Errors name the file and the line. Only scalars and sequences of them are read: nothing in a file can create another object.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from kafkacompat.config import ConfigError
from kafkacompat.faults.active import Faults
from kafkacompat.faults.rules import FaultError
from kafkacompat.storage.files.os_errors import describe_error

MAX_FILE_BYTES = 1 << 20
RULES, SEED = "rules", "seed"


def load_faults(path: Path, faults: Faults) -> None:
    """Add the rules of a file; raises ConfigError, which names the file and the line."""
    _Reader(path).load(faults)


class _Reader:
    """Reads one file; its errors name the line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, faults: Faults) -> None:
        root = self._compose()
        if root is None:
            raise ConfigError(f"{self._path} is empty: a file without rules has the key {RULES}")
        for key, value in self._list_pairs(root, "the file"):
            if key == SEED:
                faults.seed = self._read_seed(value)
            elif key != RULES:
                raise self._error(value, f"{key} is not known: the keys are {RULES} and {SEED}")
        for key, value in self._list_pairs(root, "the file"):
            if key == RULES:
                self._add_rules(value, faults)

    def _compose(self) -> Any:
        try:
            with self._path.open("rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
        except OSError as problem:
            problem.filename = None
            raise ConfigError(f"--faults {self._path} cannot be read: {describe_error(problem)}") from None
        if len(content) > MAX_FILE_BYTES:
            raise ConfigError(f"--faults {self._path} has more than {MAX_FILE_BYTES} bytes")
        try:
            return yaml.compose(content, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as problem:
            mark = problem.problem_mark
            line = f"{self._path} line {mark.line + 1}" if mark is not None else str(self._path)
            raise ConfigError(f"{line}: {problem.problem or 'it is not valid YAML'}") from None
        except yaml.reader.ReaderError as problem:
            raise ConfigError(f"{self._path} is not valid YAML: {problem.reason}; write it in UTF-8") from None
        except (yaml.YAMLError, RecursionError, ValueError):
            raise ConfigError(f"{self._path} is not valid YAML: it is nested too deeply") from None

    def _error(self, node: Any, sentence: str) -> ConfigError:
        return ConfigError(f"{self._path} line {node.start_mark.line + 1}: {sentence}")

    def _list_pairs(self, node: Any, where: str) -> Iterator[tuple[str, Any]]:
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node, f"{where} takes keys with values")
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, f"a key of {where} takes a text")
            if key.value in seen:
                raise self._error(key, f"{key.value} is there twice")
            seen.add(key.value)
            yield key.value, value

    def _read_seed(self, node: Any) -> int:
        seed = self._read_scalar(node, SEED)
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise self._error(node, f"{SEED} takes a whole number")
        return seed

    def _add_rules(self, node: Any, faults: Faults) -> None:
        if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null"):
            return
        if not isinstance(node, yaml.SequenceNode):
            raise self._error(node, f"{RULES} takes a list of rules")
        for item in node.value:
            try:
                faults.add(**{name: self._read_value(value, name) for name, value in self._list_pairs(item, "a rule")})
            except FaultError as problem:
                raise self._error(item, str(problem)) from None

    def _read_value(self, node: Any, name: str) -> Any:
        if isinstance(node, yaml.SequenceNode):
            return [self._read_scalar(item, name) for item in node.value]
        return self._read_scalar(node, name)

    def _read_scalar(self, node: Any, name: str) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            raise self._error(node, f"{name} takes a value or a list of values")
        try:
            value = yaml.SafeLoader("").construct_object(node)
        except (yaml.YAMLError, ValueError) as problem:
            reason = getattr(problem, "problem", None) or "it is not valid"
            raise self._error(node, f"{name}: {reason}") from None
        # A version such as 3 is a number in YAML.
        return str(value) if name == "versions" else value

"""A YAML file of rules, for `kafkacompat serve --faults`.

====================================  =================================================
seed: 7                               the seed of random shares; 0 without it
rules:                                the rules, in order
  - api: Produce                      a rule: the fields of docs/testing/faults.md
    topic: orders
    error: NOT_LEADER_OR_FOLLOWER
====================================  =================================================

Errors name the file and the line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kafkacompat.config import ConfigError
from kafkacompat.config.yaml_file import YamlFile, is_null, read_bounded
from kafkacompat.faults.active import Faults
from kafkacompat.faults.rules import FaultError

MAX_FILE_BYTES = 1 << 20
RULES, SEED = "rules", "seed"


def load_faults(path: Path, faults: Faults) -> None:
    """Add the rules of a file; raises ConfigError, which names the file and the line."""
    _Reader(str(path)).load(faults)


class _Reader:
    """Reads one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = YamlFile(path)

    def load(self, faults: Faults) -> None:
        root = self._file.compose(read_bounded(self._path, MAX_FILE_BYTES, f"--faults {self._path}"))
        if root is None:
            raise ConfigError(f"{self._path} is empty: a file without rules has the key {RULES}")
        values: dict[str, Any] = {}
        for key, value in self._file.list_pairs(root, "the file"):
            if key.value not in (RULES, SEED):
                raise self._file.build_error(key, f"{key.value} is not known: the keys are {RULES} and {SEED}")
            values[key.value] = value
        if SEED in values:
            faults.seed = self._read_seed(values[SEED])
        if RULES in values:
            self._add_rules(values[RULES], faults)

    def _read_seed(self, node: Any) -> int:
        seed = self._read_scalar(node, SEED)
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise self._file.build_error(node, f"{SEED} takes a whole number")
        return seed

    def _add_rules(self, node: Any, faults: Faults) -> None:
        if is_null(node):
            return
        if not isinstance(node, yaml.SequenceNode):
            raise self._file.build_error(node, f"{RULES} takes a list of rules")
        for item in node.value:
            pairs = self._file.list_pairs(item, "a rule")
            try:
                faults.add(**{key.value: self._read_value(value, key.value) for key, value in pairs})
            except FaultError as problem:
                raise self._file.build_error(item, str(problem)) from None

    def _read_value(self, node: Any, name: str) -> Any:
        if isinstance(node, yaml.SequenceNode):
            return [self._read_scalar(item, name) for item in node.value]
        return self._read_scalar(node, name)

    def _read_scalar(self, node: Any, name: str) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            raise self._file.build_error(node, f"{name} takes a value or a list of values")
        try:
            value = yaml.SafeLoader("").construct_object(node)
        except (yaml.YAMLError, ValueError) as problem:
            reason = getattr(problem, "problem", None) or "it is not valid"
            raise self._file.build_error(node, f"{name}: {reason}") from None
        # A version such as 3 is a number in YAML.
        return str(value) if name == "versions" else value

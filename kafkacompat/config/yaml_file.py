"""YAML files of settings: only scalars, sequences and mappings are read, and errors name the file and the line.

Nothing in a file can create another object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from kafkacompat.config.properties import ConfigError
from kafkacompat.storage.files.os_errors import describe_error


def read_bounded(path: str, max_bytes: int, setting: str) -> bytes:
    """Return the content of the file that a *setting* names; raises ConfigError if it cannot be read or is longer. [disk]"""
    try:
        with open(path, "rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as problem:
        problem.filename = None
        raise ConfigError(f"{setting} cannot be read: {describe_error(problem)}") from None
    if len(content) > max_bytes:
        raise ConfigError(f"{setting} has more than {max_bytes} bytes")
    return content


def is_null(node: Any) -> bool:
    """Return whether a node has no value."""
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


class YamlFile:
    """The nodes of one file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def compose(self, content: bytes) -> Any:
        """Return the root of a content, None if it is empty; raises ConfigError."""
        try:
            return yaml.compose(content, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as problem:
            mark = problem.problem_mark
            line = f"{self._path} line {mark.line + 1}" if mark is not None else self._path
            raise ConfigError(f"{line}: {problem.problem or 'it is not valid YAML'}") from None
        except yaml.reader.ReaderError as problem:
            reason = f"{problem.reason} at position {problem.position}"
            raise ConfigError(f"{self._path} is not valid YAML: {reason}; write it in UTF-8") from None
        except (yaml.YAMLError, RecursionError, ValueError):
            raise ConfigError(f"{self._path} is not valid YAML: it is nested too deeply") from None

    def build_error(self, node: Any, sentence: str) -> ConfigError:
        """Return an error at the line of a node."""
        return ConfigError(f"{self._path} line {node.start_mark.line + 1}: {sentence}")

    def list_pairs(self, node: Any, subject: str) -> Iterator[tuple[Any, Any]]:
        """Yield the nodes of the keys and values of a mapping; raises ConfigError for another node and for a key that comes twice."""
        if not isinstance(node, yaml.MappingNode):
            raise self.build_error(node, f"{subject} takes keys with values")
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self.build_error(key, f"a key of {subject} takes a text")
            if key.value in seen:
                raise self.build_error(key, f"{key.value} is there twice")
            seen.add(key.value)
            yield key, value

"""The instances of a single node in a YAML file: read at the start, and again when the file changes.

The difference to the metadata is applied by the same changes as those of the command line. An instance that comes from the file
has the property managed.by=file. If it goes from the file, its two-step deletion begins; if it comes back within the grace period, it
is restored. Other instances are left alone, and a name that one of them has is an error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import yaml
from twisted.internet.defer import Deferred

from kafkacompat.config.instances import INSTANCE_PROPERTIES, Instance, check_instance_name
from kafkacompat.config.properties import ConfigError
from kafkacompat.config.resources import ResourceType
from kafkacompat.config.suggestions import did_you_mean
from kafkacompat.config.yaml_file import YamlFile, is_null, read_bounded
from kafkacompat.metadata.config_changes import ResourceChange
from kafkacompat.tenancy import instance_changes
from kafkacompat.timers import Clock, PeriodicCall, now_ms
from kafkacompat.wire.errors import KafkaError

if TYPE_CHECKING:
    from random import Random

    from kafkacompat.disk import Disk
    from kafkacompat.metadata.administration import Administration

log = logging.getLogger(__name__)

CHECK_INTERVAL_S = 5.0
MAX_FILE_BYTES = 16 << 20
MANAGED = {"managed.by": "file"}
ROOT = "instances"
CHANGES_A_REQUEST = 100

Wanted = Mapping[str, Mapping[str, str]]


def read_file(path: str) -> bytes:
    """Return the content of a file; raises ConfigError. [disk]"""
    return read_bounded(path, MAX_FILE_BYTES, f"kafkacompat.instances.file={path}")


def parse_instances(path: str, content: bytes) -> Wanted:
    """Return the properties of each instance in a file; raises ConfigError, which names line and key. [disk]

    ====================================  =================================================
    instances:                            the only key at the top
      shop:                               an instance; without properties an empty one
        limit.topics: 3                   a property; a list is a sequence or has commas
        whitelist: [10.0.0.0/8]
    ====================================  =================================================

    Scalars and sequences of them are read as texts.
    """
    reader = _Reader(path)
    root = reader.compose(content)
    if root is None or is_null(root):
        raise ConfigError(f"{path} is empty: a file without instances has the key {ROOT}")
    wanted: dict[str, Mapping[str, str]] = {}
    for key, value in reader.list_pairs(root, "the file"):
        if key.value != ROOT:
            raise reader.build_error(key, f"{key.value} is not known: the only key is {ROOT}")
        for name, properties in reader.list_pairs(value, ROOT):
            wanted[name.value] = reader.read_properties(name, properties)
    return wanted


class _Reader(YamlFile):
    """Reads the properties of instances."""

    def list_pairs(self, node: Any, subject: str) -> Iterator[tuple[Any, Any]]:
        """Yield nothing for a mapping that is left out."""
        return iter(()) if is_null(node) else super().list_pairs(node, subject)

    def read_properties(self, name: Any, node: Any) -> Mapping[str, str]:
        try:
            check_instance_name(name.value)
        except ConfigError as problem:
            raise self.build_error(name, str(problem)) from None
        properties = dict(MANAGED)
        for key, value in self.list_pairs(node, name.value):
            option = key.value
            if option not in INSTANCE_PROPERTIES:
                reason = f"{option} is not a property of instances{did_you_mean(option, INSTANCE_PROPERTIES)}"
                raise self.build_error(key, reason)
            if option in instance_changes.OWN_PROPERTIES or option in MANAGED:
                raise self.build_error(key, f"{option} is not set by hand")
            text = self._read_value(option, value)
            try:
                Instance(name.value, {option: text})
            except ConfigError as problem:
                raise self.build_error(key, str(problem)) from None
            properties[option] = text
        return properties

    def _read_value(self, option: str, node: Any) -> str:
        items = node.value if isinstance(node, yaml.SequenceNode) else [node]
        texts = []
        for item in items:
            if not isinstance(item, yaml.ScalarNode):
                raise self.build_error(item, f"{option} takes a text, a number, true, false or a list of these")
            texts.append("" if is_null(item) else item.value)
        return ",".join(texts)


def plan_file(given: Wanted, wanted: Wanted, rng: Random, now: int) -> dict[str, instance_changes.Changes]:
    """Return the changes, by instance, from the properties *given* to those of a file; raises ConfigError.

    *now* is the time in milliseconds since the epoch.
    """
    changes: dict[str, instance_changes.Changes] = {}
    for name, properties in wanted.items():
        present = given.get(name)
        if present is None:
            changes[name] = instance_changes.plan_creation(properties, rng)
            continue
        if not _is_managed(present):
            raise ConfigError(f"the instance {name} does not come from the file: set its managed.by to file first")
        planned = instance_changes.plan_difference(present, properties)
        instance = Instance(name, present)
        if not instance.is_active:
            planned += instance_changes.plan_restoration(instance, now)
        changes[name] = planned
    for name, present in given.items():
        if name not in wanted and _is_managed(present) and Instance(name, present).is_active:
            changes[name] = instance_changes.plan_deletion(now, instance_changes.DEFAULT_GRACE_MS)
    return {name: planned for name, planned in changes.items() if planned}


def _is_managed(given: Mapping[str, str]) -> bool:
    return given.get("managed.by") == MANAGED["managed.by"]


class InstancesFile:
    """Keeps the metadata like a file. *get_disk* returns the thread that reads it."""

    def __init__(
        self, path: str, controller: Administration, clock: Clock, get_disk: Callable[[], Disk], rng: Random
    ) -> None:
        self._path = path
        self._controller = controller
        self._clock = clock
        self._get_disk = get_disk
        self._rng = rng
        self._content: bytes | None = None
        self._last_read: bytes | None = None
        self._last_problem = ""
        self._checks = PeriodicCall(clock, self._check)

    async def load(self) -> None:
        """Read and apply the file at the start; raises ConfigError."""
        content = await self._get_disk().run(read_file, self._path)
        await self._apply(content)

    def start(self) -> None:
        """Look at the file from now on."""
        self._checks.start(CHECK_INTERVAL_S, now=False)

    def stop(self) -> None:
        """Look no more."""
        if self._checks.running:
            self._checks.stop()

    def _check(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._follow())

    async def _follow(self) -> None:
        """Apply the file if it has changed; a problem is logged once, and changes nothing.

        What is read twice alike is not in the middle of being written.
        """
        try:
            content = await self._get_disk().run(read_file, self._path)
            is_whole, self._last_read = content == self._last_read, content
            if is_whole and content != self._content:
                count = await self._apply(content)
                log.info("Read %s again: %d instances changed", self._path, count)
            self._last_problem = ""
        except ConfigError as problem:
            if str(problem) != self._last_problem:
                log.error("The instances stay as they are: %s", problem)
            self._last_problem = str(problem)

    async def _apply(self, content: bytes) -> int:
        """Apply the difference; return the number of instances that changed. Raises ConfigError."""
        wanted = await self._get_disk().run(parse_instances, self._path, content)
        configs = self._controller.committed.configs
        given = {name: values for (kind, name), values in configs.items() if kind == ResourceType.INSTANCE}
        try:
            planned = plan_file(given, wanted, self._rng, now_ms(self._clock))
            changes = [ResourceChange(ResourceType.INSTANCE, name, operations) for name, operations in planned.items()]
            for first in range(0, len(changes), CHANGES_A_REQUEST):
                portion = changes[first : first + CHANGES_A_REQUEST]
                for change, outcome in zip(portion, await self._controller.alter_configs(portion), strict=True):
                    if outcome is not None:
                        raise ConfigError(f"instance {change.name}: {outcome.detail}")
        except KafkaError as problem:
            raise ConfigError(f"the metadata cannot be changed: {problem}") from None
        except ConfigError as problem:
            raise ConfigError(f"{self._path}: {problem}") from None
        self._content = content
        return len(changes)

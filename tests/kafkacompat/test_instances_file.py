"""instances.yaml: what it says is what the broker has, at the start and when the file changes."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kafkacompat.broker import Broker
from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.config.resources import ResourceType
from kafkacompat.instances_file import CHECK_INTERVAL_S, parse_instances
from tests.fakes.memory_host import MemoryHost
from tests.kafkacompat.test_broker_over_memory_network import HOST, World

SHOP_AND_BANK = """
instances:
  shop:
    limit.topics: 3
    whitelist: [10.0.0.0/8, "fd00::/8"]
  bank:
"""


class FileWorld(World):
    """A broker with an instances file."""

    def __init__(self, folder: Path, text: str) -> None:
        super().__init__(folder / "data")
        self.path = folder / "instances.yaml"
        self.path.write_text(text)
        config = BrokerConfig({**self.broker.config.given, "kafkacompat.instances.file": str(self.path)})
        self.broker = Broker(MemoryHost(self.clock, self.network.at(HOST), files=self.files), config)

    def rewrite(self, text: str) -> None:
        """Change the file, and let the broker look twice."""
        self.path.write_text(text)
        self.clock.pump([CHECK_INTERVAL_S, 0.01, CHECK_INTERVAL_S, 0.01, 0.01, 0.01])

    def properties(self, name: str) -> dict[str, str]:
        return dict(self.broker.metadata.image.config(ResourceType.INSTANCE, name))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path


def test_the_file_is_applied_at_the_start_and_when_it_changes(folder: Path) -> None:
    world = FileWorld(folder, SHOP_AND_BANK)
    world.run(world.broker.start())
    shop = world.properties("shop")
    assert (shop["limit.topics"], shop["whitelist"], shop["managed.by"]) == ("3", "10.0.0.0/8,fd00::/8", "file")
    assert set(world.broker.instances.by_name) == {"shop", "bank"}
    world.rewrite(SHOP_AND_BANK.replace("limit.topics: 3", "limit.groups: 5"))
    changed = world.properties("shop")
    assert "limit.topics" not in changed and changed["limit.groups"] == "5"
    assert (changed["cluster.id"], changed["secret"]) == (shop["cluster.id"], shop["secret"])


def test_an_instance_that_goes_from_the_file_is_deleted_in_two_steps(folder: Path) -> None:
    world = FileWorld(folder, SHOP_AND_BANK)
    world.run(world.broker.start())
    world.rewrite("instances:\n  bank:\n")
    assert not world.broker.instances.by_name["shop"].instance.is_active
    assert world.broker.instances.by_name["bank"].instance.is_active
    assert int(world.properties("shop")["delete.at.ms"]) > world.clock.seconds() * 1000
    world.rewrite(SHOP_AND_BANK)
    assert world.broker.instances.by_name["shop"].instance.is_active
    assert "delete.at.ms" not in world.properties("shop")


def test_a_file_in_the_middle_of_being_written_has_no_effect(folder: Path) -> None:
    world = FileWorld(folder, SHOP_AND_BANK)
    world.run(world.broker.start())
    for text in ("", "instances:\n", "instances:\n  shop:\n"):
        world.path.write_text(text)
        world.clock.pump([CHECK_INTERVAL_S, 0.01])
    world.rewrite(SHOP_AND_BANK)
    assert all(view.instance.is_active for view in world.broker.instances.by_name.values())


def test_a_file_that_is_not_valid_changes_nothing_and_is_logged_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = FileWorld(folder, SHOP_AND_BANK)
    world.run(world.broker.start())
    before = world.properties("shop")
    world.rewrite(SHOP_AND_BANK.replace("limit.topics: 3", "limit.topics: many"))
    world.clock.pump([CHECK_INTERVAL_S] * 5)
    assert world.properties("shop") == before
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert line == (
        f"The instances stay as they are: {world.path} line 4: "
        "limit.topics=many is not valid: it takes a whole number of -1 or more"
    )
    world.path.unlink()
    world.clock.pump([CHECK_INTERVAL_S] * 5)
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 2
    world.rewrite(SHOP_AND_BANK.replace("limit.topics: 3", "limit.topics: 4"))
    assert world.properties("shop")["limit.topics"] == "4"


def test_a_bad_file_ends_the_start_with_a_sentence(folder: Path) -> None:
    world = FileWorld(folder, "instances:\n  a.b:\n")
    with pytest.raises(ConfigError, match=r"instances.yaml line 2: the instance name 'a.b' is not valid"):
        world.run(world.broker.start())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "f is empty: a file without instances has the key instances"),
        ("[]", "f line 1: the file takes keys with values"),
        ("instance:\n", "f line 1: instance is not known: the only key is instances"),
        ("instances:\n  shop: {}\n  shop: {}\n", "f line 3: shop is there twice"),
        ("instances:\n  shop:\n    limit.topic: 3\n", "f line 3: limit.topic is not a property of instances"),
        ("instances:\n  shop:\n    secret: x\n", "f line 3: secret is not set by hand"),
        ("instances:\n  shop:\n    limit.topics:\n      a: b\n", "f line 4: limit.topics takes a text"),
        ("instances:\n  shop:\n  limit.topics: 3\n", "f line 3: the instance name 'limit.topics' is not valid"),
        ("instances: {shop: {description: !!python/object/apply:os.system [ls]}}", ""),
        ("instances:\n  - shop\n", "f line 2: instances takes keys with values"),
        ("a: [", "f line 1: "),
        ("a: &a [*a]", "f line 1: a is not known"),
        ("\x00", "f is not valid YAML"),
        ("[" * 5000, "f is not valid YAML"),
        ("? [a]\n: b\n", "f line 1: a key of the file takes a text"),
    ],
)
def test_errors_name_the_line(text: str, sentence: str) -> None:
    if not sentence:
        # A tag creates no object: the value is read as the texts that it has.
        assert parse_instances("f", text.encode())["shop"]["description"] == "ls"
        return
    with pytest.raises(ConfigError) as raised:
        parse_instances("f", text.encode())
    assert str(raised.value).startswith(sentence)


def test_a_name_that_another_instance_has_is_an_error(folder: Path) -> None:
    world = FileWorld(folder, "instances:\n  shop:\n")
    world.run(world.broker.start())
    from kafkacompat.metadata.config_changes import ResourceChange
    from kafkacompat.tenancy.instance_changes import plan_alteration

    change = ResourceChange(ResourceType.INSTANCE, "shop", plan_alteration({}, ["managed.by"]))
    assert world.run(world.broker.controller.alter_configs([change])) == [None]
    world.rewrite("instances:\n  shop:\n    limit.topics: 1\n")
    assert "limit.topics" not in world.properties("shop")

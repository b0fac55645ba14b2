"""setup.cfg names every package there is: one that it forgets would be missing from what users install."""

from __future__ import annotations

from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_package_list_is_the_tree() -> None:
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = set(config["options"]["packages"].split())
    packages = {
        ".".join(folder.parent.relative_to(ROOT).parts)
        for top in ("kafkacompat", "wire", "handlers", "storage", "spark_integration")
        for folder in (ROOT / top).rglob("__init__.py")
    }
    own_names = ("kafkacompat", "spark_integration")
    assert listed == {name if name.startswith(own_names) else f"kafkacompat.{name}" for name in packages}

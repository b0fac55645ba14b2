"""When the code on the disk is another one."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from kafkacompat.workers import sources


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with two modules, which is all the code that there is."""
    (tmp_path / "inner").mkdir()
    for name in ("a.py", "inner/b.py"):
        (tmp_path / name).write_text(f"'''{name}'''\n")
    module = ModuleType("package")
    module.__path__ = [str(tmp_path)]
    monkeypatch.setattr(sources, "PACKAGES", (module,))
    return tmp_path


def test_the_fingerprint_of_unchanged_sources_is_the_same(package: Path) -> None:
    before = sources.fingerprint_sources()
    (package / "a.py").write_bytes((package / "a.py").read_bytes())
    (package / "notes.txt").write_text("of no importance")
    assert sources.fingerprint_sources() == before


def test_any_change_makes_it_another(package: Path) -> None:
    fingerprints = [sources.fingerprint_sources()]
    (package / "inner" / "b.py").write_text("'''B'''\n")
    fingerprints.append(sources.fingerprint_sources())
    (package / "c.py").touch()
    fingerprints.append(sources.fingerprint_sources())
    (package / "c.py").rename(package / "inner" / "c.py")
    fingerprints.append(sources.fingerprint_sources())
    (package / "a.py").unlink()
    fingerprints.append(sources.fingerprint_sources())
    (package / "compiled.so").touch()
    fingerprints.append(sources.fingerprint_sources())
    (package / "inner" / "b.py").unlink()
    (package / "inner" / "b.py").symlink_to(package / "absent")
    fingerprints.append(sources.fingerprint_sources())
    assert len(set(fingerprints)) == len(fingerprints)


def test_the_fingerprint_covers_the_imported_modules() -> None:
    names = {path.name for package in sources.PACKAGES for path in Path(package.__path__[0]).rglob("*.py")}
    assert {"child.py", "record_batch.py", "scrub.py"} <= names

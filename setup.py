"""Builds the optional compiled form of wire/record_walk.py; setup.cfg has everything else.

Without a C compiler or Cython the installation goes on, and the walk runs as plain Python. The module is compiled under another
name than its source, so that a stale file never shadows the source. It carries the sources that it was built from:
`kafkacompat.wire.walk_form` compares them.
"""

from __future__ import annotations

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

SOURCE = Path("kafkacompat/wire/record_walk.py")
COMPILED = "kafkacompat.wire.compiled_record_walk"


class BuildRecordWalk(build_ext):
    """Translates the source to C right before the compiler needs it, so that no other command needs Cython."""

    def build_extension(self, ext: Extension) -> None:
        ext.sources = [self._translate()]
        super().build_extension(ext)

    def _translate(self) -> str:
        """Write a copy of the source, with its C types and with SOURCES, and return the C file made of it."""
        try:
            from Cython.Build import cythonize
            from Cython.Compiler.Errors import CompileError as TranslationError
        except ImportError:
            raise CompileError("Cython is missing") from None
        types = SOURCE.with_suffix(".pxd")
        folder = Path(self.build_temp) / "cython"
        package = folder / "kafkacompat" / "wire"
        package.mkdir(parents=True, exist_ok=True)
        for initial in (package, package.parent):
            (initial / "__init__.py").touch()
        copy = package / COMPILED.rpartition(".")[2]
        carried = f"\n\nSOURCES = ({SOURCE.read_bytes()!r}, {types.read_bytes()!r})\n"
        copy.with_suffix(".py").write_text(SOURCE.read_text("utf-8") + carried, "utf-8")
        copy.with_suffix(".pxd").write_text(types.read_text("utf-8"), "utf-8")
        try:
            cythonize(
                [Extension(COMPILED, [str(copy.with_suffix(".py"))])],
                include_path=[str(folder)],
                compiler_directives={"language_level": "3", "annotation_typing": False, "wraparound": False},
                force=True,
                quiet=True,
            )
        except TranslationError as problem:
            raise CompileError(f"Cython cannot translate {SOURCE}: {problem}") from problem
        return str(copy.with_suffix(".c"))


# Without debug information the file has a fifth of the size. -O2 halves the time of -O3, and the walk is as fast.
setup(
    ext_modules=[Extension(COMPILED, [str(SOURCE)], optional=True, extra_compile_args=["-O2", "-g0"])],
    cmdclass={"build_ext": BuildRecordWalk},
)

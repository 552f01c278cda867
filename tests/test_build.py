"""A build that cannot succeed ends in a sentence, before a minute's work."""

import runpy
import sys
import sysconfig
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest

SETUP = Path(__file__).parents[1] / "setup.py"


@pytest.fixture
def check(monkeypatch):
    """Call the check that precedes a build, with a compiler of a type and command."""
    setuptools = pytest.importorskip("setuptools", reason="it is needed to build only")
    pytest.importorskip("Cython.Build", reason="it is needed to build only")
    monkeypatch.setattr(setuptools, "setup", lambda **settings: None)
    monkeypatch.chdir(SETUP.parent)
    builder = runpy.run_path(str(SETUP))["BuildKernels"]

    def check(command=sys.executable, kind="unix"):
        compiler = SimpleNamespace(compiler_so=[command], compiler_type=kind)
        builder.check_compiler(SimpleNamespace(compiler=compiler))

    return check


def refused(check, **compiler):
    from setuptools.errors import PlatformError

    with pytest.raises(PlatformError) as caught:
        check(**compiler)
    return str(caught.value)


def test_machine_without_a_compiler_is_told_what_to_install(check):
    error = refused(check, command="nonesuch")
    assert "there is no compiler 'nonesuch' here: install GCC 10, clang 14" in error


def test_machine_without_headers_is_told_what_to_install(check, tmp_path, monkeypatch):
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    assert f"{tmp_path}/Python.h is not there: install" in refused(check)
    (tmp_path / "Python.h").touch()
    check()


def test_big_endian_processor_is_refused(check, monkeypatch):
    monkeypatch.setattr(sys, "byteorder", "big")
    error = refused(check)
    assert "need a little-endian processor, such as x86-64 or ARM" in error


def test_compiler_of_microsoft_is_refused(check):
    assert "Microsoft's compiler lacks" in refused(check, command="cl", kind="msvc")


def test_headers_have_names_that_no_others_have():
    names = {path.name for path in (SETUP.parent / "nplm").rglob("*.h")}
    # Where compilers look besides: whatever comes first is taken.
    python = Path(sysconfig.get_path("include"))
    others = chain(python.rglob("*.h"), Path("/usr/include").glob("*.h"))
    assert names
    assert not names & {path.name for path in others}

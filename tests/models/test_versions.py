"""What a report of a fault should say."""

import platform
import re

import pytest
from click.testing import CliRunner

import nplm
from nplm.cli import main
from nplm.models import versions as versions


@pytest.fixture
def shown(capsys):
    def show():
        nplm.show_versions()
        lines = capsys.readouterr().out.splitlines()
        return dict(line.split(": ", 1) for line in lines)

    return show


def test_versions_processor_and_kernels(shown, monkeypatch):
    monkeypatch.delenv("NPLM_TIER", raising=False)
    found = shown()
    assert found["nplm"] == nplm.__version__
    assert found["python"].startswith(platform.python_version())
    assert "numpy" in found["packages"] and "scipy" in found["packages"]
    assert found["BLAS"] and found["processor"] and found["caches"]
    assert re.fullmatch(r"by .*(GCC|[Cc]lang) \d+\..*", found["kernels"])
    for precision in ("float32", "float64"):
        tiers = nplm.available_tiers(precision)
        assert found[precision] == f"{tiers[0]} in use, of {', '.join(tiers)}"


def test_the_tier_that_was_asked_for(shown, monkeypatch):
    with nplm.use_tier("blas"):
        assert shown()["float32"].startswith("blas in use, of ")
    monkeypatch.setenv("NPLM_TIER", "plain")
    assert shown()["bfloat16"].startswith("plain in use, of ")
    monkeypatch.setenv("NPLM_TIER", "fast")
    line = shown()["float32"]
    assert line.startswith("none in use, of ") and "'fast'" in line


def test_the_command_says_the_same():
    result = CliRunner().invoke(main, ["show-versions"])
    assert result.exit_code == 0
    names = [line.split(":")[0] for line in result.output.splitlines()]
    assert names == [name for name, _ in versions._lines()]


def test_processors_by_name(tmp_path):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: A: fast one\nflags\t: fpu\n")
    assert versions.processor(cpuinfo) == "A: fast one"
    cpuinfo.write_text("processor\t: 0\nCPU part\t: 0xd40\n")
    assert versions.processor(cpuinfo) in (platform.processor(), platform.machine())
    assert versions.processor(tmp_path / "none") == versions.processor(cpuinfo)


def test_caches_of_data(tmp_path):
    kinds = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2M")]
    for i, files in enumerate(kinds):
        index = tmp_path / f"index{i}"
        index.mkdir()
        for name, text in zip(("level", "type", "size"), files):
            (index / name).write_text(text + "\n")
    assert versions.caches(tmp_path) == ["L1 48K", "L2 2M"]
    assert versions.caches(tmp_path / "none") == []

"""AMX kernels on processors without AMX, with emulated instructions."""

import shutil
import subprocess
from pathlib import Path

import pytest

import nplm
from nplm._kernels.neural._loops import available_tiers


@pytest.mark.slow
@pytest.mark.skipif("amx" in available_tiers("bfloat16"), reason="has AMX")
@pytest.mark.skipif("avx512" not in available_tiers(), reason="needs AVX-512")
def test_tile_kernels_agree_with_emulated_instructions(tmp_path):
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs gcc")
    source, built = Path(__file__).with_name("amx_emulator.c"), tmp_path / "emulator"
    headers = Path(nplm.__file__).parent / "_kernels" / "neural" / "tiers"
    flags = ["-O3", "-fopenmp-simd", "-Wno-unused-function", f"-I{headers}"]
    subprocess.run([compiler, *flags, source, "-o", built, "-lm"], check=True)
    done = subprocess.run([built], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("products of tiles\n")

"""How much of the processor's bfloat16 do the products of the output units reach?

Times the parts of a mini-batch of the paper's networks one by one, on one thread: the
three products alone, with the packing before them, and with the exponentials of the
softmax, each as a share of the most that this processor multiplies. The peak is
measured in registers (limits.c). Needs a processor with AVX512_BF16 or AMX and a
C compiler, CC or cc, which compiles the kernels' headers as nplm's build does.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import nplm
from common.networks import NETWORKS, TIMED, Shape
from common.table import named, parser, report
from speed.limits import gflops

TILE = 192  # BFLOAT16_TILE of nplm/_kernels/neural/outputs/_softmax.pyx
FLAGS = [
    "-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-fno-wrapv",
    "-Wno-unused-function", "-shared", "-fPIC",
]  # fmt: skip
PRODUCTS = ["logits", "gradient", "update"]
PACKING = ["pack E by rows", "pack slopes", "pack E by columns"]
PARTS = [*PRODUCTS, *PACKING, "exponentials"]  # in the order of bfloat16.c


def library() -> ctypes.CDLL:
    """Compile the kernels and the loop that times them."""
    headers = Path(nplm.__file__).parent / "_kernels" / "neural" / "tiers"
    source = Path(__file__).with_name("bfloat16.c")
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "bfloat16.so")
        compiler = os.environ.get("CC", "cc").split()
        paths = [f"-I{headers}", str(source), "-o", str(built), "-lm"]
        subprocess.run([*compiler, *FLAGS, *paths], check=True)
        loaded = ctypes.CDLL(str(built))
    n = ctypes.c_int64
    loaded.mini_batch.argtypes = [ctypes.c_char_p, n, n, n, n, n, ctypes.c_void_p]
    return loaded


def seconds(
    kernels: ctypes.CDLL, tier: str, shape: Shape, batch: int, repeats: int
) -> dict[str, float]:
    """Best time of each part of a mini-batch."""
    best = (ctypes.c_double * len(PARTS))()
    done = kernels.mini_batch(
        tier.encode(), shape.n_words, shape.width, batch, TILE, repeats, best
    )
    if not done:
        raise SystemExit(f"{tier}: the processor lacks it, or memory is short")
    return dict(zip(PARTS, best, strict=True))


def measure(args: Any, tier: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Shares of the peak; times of what is no product, in percent of the ideal's."""
    kernels = library()
    for name in args.networks:
        shape = NETWORKS[name]
        for batch in args.batch:
            time = seconds(kernels, tier, shape, batch, args.repeats)
            ideal = 2e-9 * shape.n_words * shape.width * batch / gflops("bfloat16")
            products = sum(time[part] for part in PRODUCTS)
            packed = products + sum(time[part] for part in PACKING)
            row: dict[str, Any] = {"network": name, "K": batch}
            row |= {part: ideal / time[part] for part in PRODUCTS}
            row |= {
                "products": 3 * ideal / products,
                "with packing": 3 * ideal / packed,
                "with exponentials": 3 * ideal / (packed + time["exponentials"]),
            }
            others = {part: 100 * time[part] / (3 * ideal) for part in PARTS[3:]}
            yield row, {"network": name, "K": batch} | others


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--networks", nargs="+", default=TIMED)
    options.add_argument("--batch", nargs="+", type=int, default=[128, 512])
    options.add_argument("--repeats", type=int, default=10, help="of which the best")
    args = options.parse_args()
    if any(batch % 16 for batch in args.batch):
        options.error("--batch must be multiples of 16")
    tier = nplm.available_tiers("bfloat16")[0]
    if tier == "plain":
        raise SystemExit("This processor does not multiply bfloat16.")
    peak, single = gflops("bfloat16"), gflops("float32")
    report(
        "Peak, GFLOP/s, one thread",
        [{"tier": tier, "bfloat16": peak, "float32": single, "ratio": peak / single}],
    )
    shares, others = zip(*measure(args, tier), strict=True)
    report("Shares of it", list(shares), args.json)
    report(
        "The rest, in percent of the time of three products at the peak",
        list(others),
        named(args.json, "rest"),
    )


if __name__ == "__main__":
    main()

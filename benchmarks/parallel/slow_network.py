"""What does a slow network cost, and what does batch_size do about it?

Section 3.2 advises several examples a message where messages are slow. Here
they are made slow: two ranks, each in a network namespace and with a host name of
its own, talk over TCP through a pair of TUN interfaces between which this script
carries every packet a fixed time late (the kernel's netem is not needed). The
cost model, fitted to one rank and to messages without delay, predicts what the delay
does (costs.py): that of the paper's networks, whose ranks share the output units, and
that of the default, whose ranks share the examples. Needs root and
/dev/net/tun; what it makes it removes.

    sudo python benchmarks/parallel/slow_network.py --delays 0 1 5
    sudo python benchmarks/parallel/slow_network.py --network default
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

from common.networks import NETWORKS
from common.table import Rows, parser, report
from parallel import cluster_examples, speedup
from parallel.costs import Link

ENDS = {"nplm-slow-a": "10.77.0.1", "nplm-slow-b": "10.77.0.2"}
MTU = 65_000  # a message in few packets: the relay is to be late, not slow


def ip(*command: str) -> None:
    subprocess.run(["ip", *command], check=True)


@contextmanager
def namespaces(names: list[str]) -> Iterator[None]:
    try:
        for name in names:
            ip("netns", "add", name)
        yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)


def interface(namespace: str, address: str) -> int:
    """Make a TUN interface in a namespace; whoever has the descriptor is its wire."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace}") as there:
        if libc.setns(there.fileno(), 0x40000000):  # CLONE_NEWNET
            raise OSError(ctypes.get_errno(), "setns")
    wire = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    # TUNSETIFF with IFF_TUN | IFF_NO_PI: IP packets and nothing else.
    fcntl.ioctl(wire, 0x400454CA, struct.pack("16sH22x", b"slow", 0x1001))
    ip("addr", "add", f"{address}/24", "dev", "slow")
    ip("link", "set", "slow", "mtu", str(MTU), "up")
    ip("link", "set", "lo", "up")
    return wire


def carry(wires: list[int], delay: float) -> None:
    """Bring packets from each end to the other, `delay` seconds late."""
    other = dict(zip(wires, wires[::-1]))
    on_the_way: deque[tuple[float, int, bytes]] = deque()
    while True:
        wait = max(0, on_the_way[0][0] - time.monotonic()) if on_the_way else None
        for wire in select.select(wires, [], [], wait)[0]:
            packet = os.read(wire, MTU)
            on_the_way.append((time.monotonic() + delay, other[wire], packet))
        while on_the_way and on_the_way[0][0] <= time.monotonic():
            _, wire, packet = on_the_way.popleft()
            os.write(wire, packet)


@contextmanager
def slow_wire(ends: dict[str, str], delay: float) -> Iterator[None]:
    """A process that connects namespaces, which are given with their addresses."""
    ready, started = os.pipe()
    relay = os.fork()
    if relay == 0:
        try:
            wires = [interface(*end) for end in ends.items()]
            # Ranks wait busily: the relay must not wait for them to be done.
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            os.write(started, b"!")
            carry(wires, delay)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(started)
    try:
        if not os.read(ready, 1):
            raise SystemExit("The interfaces could not be made.")
        yield
    finally:
        os.close(ready)
        os.kill(relay, signal.SIGKILL)
        os.waitpid(relay, 0)


def on_machine(namespace: str, command: str) -> list[str]:
    """A shell command as on a machine of its own: another network and host name."""
    named = f"hostname {namespace}; {command}"
    return ["ip", "netns", "exec", namespace, "unshare", "--uts", "sh", "-c", named]


def two_ranks(
    delay: float, start: Callable[..., dict[str, Any]], **options: Any
) -> dict[str, Any]:
    """Measure two ranks with this delay between them; `start` starts the worker."""
    (here, there), addresses = ENDS, ",".join(f"{a}:1" for a in ENDS.values())
    with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as agent:
        # mpiexec calls this with a host and a command, as it would call ssh.
        agent.write(f'#!/bin/sh\nshift\nexec {shlex.join(on_machine(there, ""))}"$*"\n')
    try:
        os.chmod(agent.name, 0o700)
        mpiexec = [
            speedup.mpiexec(), "--prtemca", "plm_ssh_agent", agent.name,
            "--host", addresses, "-n", "2", "--map-by", "node",
        ]  # fmt: skip
        environment = speedup.TCP | {
            "OMPI_MCA_btl_tcp_if_include": "slow",
            "OMPI_MCA_mpi_yield_when_idle": "1",  # the relay needs a core, too
        }
        with namespaces(list(ENDS)), slow_wire(ENDS, delay):
            here_runs = on_machine(here, 'exec "$0" "$@"')
            return start([*here_runs, *mpiexec], environment, **options)
    finally:
        os.unlink(agent.name)


def of_paper(network: str, delays: list[float], **options: Any) -> tuple[Rows, Rows]:
    """One of the paper's networks, and the messages of it."""
    what = dict(names=[network], **options)
    measured = {1: speedup.under_mpi(1, tcp=True, **what)}
    shape, rows, sizes = NETWORKS[network], [], []
    for delay in delays:
        found = two_ranks(delay / 1000, speedup.start, **what)
        if 2 not in measured:
            measured[2] = found
            fitted = speedup.fit_cluster(measured, [network])
        more = (delay - delays[0]) / 1000
        link = replace(fitted.link, latency=fitted.link.latency + more)
        cluster = replace(fitted, link=link)
        for K in speedup.BATCHES:
            run, one = (m[f"{network} {K}"]["seconds"] for m in (found, measured[1]))
            rows.append({
                "delay, ms": delay, "K": K, "ms/example": 1e3 * run,
                "model": 1e3 * cluster.seconds(shape, 2, K) / K,
                "speed-up": one / run, "its model": cluster.speed_up(shape, 2, K),
            })  # fmt: skip
        sizes += [
            {"delay, ms": delay, "bytes": size, "ms": 1e3 * took,
             "model": 1e3 * link.allreduce(2, size)}
            for size, took in found[f"{network} messages"]
        ]  # fmt: skip
    return rows, sizes


def of_today(delays: list[float], seconds: float) -> Rows:
    """The default: a mini-batch, by the delay."""
    one = cluster_examples.under_mpi(1, seconds)
    rows: Rows = []
    for delay in delays:
        found = two_ranks(delay / 1000, cluster_examples.start, seconds=seconds)
        if not rows:
            costs = cluster_examples.costs_of(one, found)
            link = Link(found["bandwidth"], found["latency"])
        late = Link(link.bandwidth, link.latency + (delay - delays[0]) / 1000)
        alone, run = (m[str(costs.K)] for m in (one, found))
        rows.append({
            "delay, ms": delay, "K": costs.K, "ms": 1e3 * run,
            "model": 1e3 * costs.on_cluster(2, late), "speed-up": alone / run,
            "its model": costs.speed_up(2, late), "MB/s": found["bandwidth"] / 1e6,
        })  # fmt: skip
    return rows


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--network", choices=["default", *NETWORKS], default="MLP9")
    options.add_argument(
        "--delays", nargs="+", type=float, default=[0, 1, 5],
        help="of each packet, in ms; the first is what the model is fitted to",
    )  # fmt: skip
    options.add_argument("--seconds", type=float, default=0.2, help="a measurement")
    options.add_argument("--rounds", type=int, default=3)
    args = options.parse_args()
    if os.geteuid():
        raise SystemExit("Only root can make network namespaces.")
    title = f"Two ranks, {args.network}"
    if args.network == "default":
        report(title, of_today(args.delays, args.seconds * args.rounds), args.json)
        return
    rows, sizes = of_paper(
        args.network, args.delays, seconds=args.seconds, rounds=args.rounds
    )
    report(title, rows, args.json)
    report("An Allreduce", sizes)


if __name__ == "__main__":
    main()

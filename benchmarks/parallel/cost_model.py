"""What a mini-batch costs on a cluster: the model behind speedup.py.

    seconds = overhead + slope(K) * K * (a rank's weights) + messages

with the weights of section 3: ceil(|V| / M) rows of the output units and all of
what is below them, which every rank duplicates. The messages are those of
nplm.mpi: an Allgather of three float64 an example (or Allreduces of two and of
one, where that is faster), and an Allreduce of the gradients on the hidden and
feature layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

from common.networks import Shape

LARGE = 4096  # bytes, from which Open MPI 5 scatters and gathers, about


@dataclass(frozen=True)
class Network:
    """Seconds a message takes in any case, and bytes a second."""

    latency: float
    bandwidth: float

    def allgather(self, ranks: int, size: int) -> float:
        """`size` bytes from each: log2 M steps that double what is sent."""
        steps = ceil(log2(ranks))
        return steps * self.latency + (ranks - 1) * size / self.bandwidth

    def allreduce(self, ranks: int, size: int) -> float:
        """Small: log2 M exchanges of all. Large: scatter, then gather."""
        if size <= LARGE:
            return self.exchanges(ranks, size) * (self.latency + size / self.bandwidth)
        parts = 2 * (ranks - 1) / ranks * size / self.bandwidth
        return self.exchanges(ranks, size) * self.latency + parts

    def exchanges(self, ranks: int, size: int) -> int:
        """Latencies of an Allreduce, one after the other."""
        return ceil(log2(ranks)) * (1 if size <= LARGE else 2)

    def totals(self, ranks: int, K: int) -> float:
        """Bring the softmax's maximum, the target's logit and the sum together."""
        two = self.allreduce(ranks, 16 * K) + self.allreduce(ranks, 8 * K)
        return min(self.allgather(ranks, 24 * K), two)

    def batch(self, shape: Shape, ranks: int, K: int) -> float:
        """All messages of a mini-batch."""
        if ranks == 1:
            return 0.0
        return self.totals(ranks, K) + self.allreduce(ranks, shape.gradients(K))


@dataclass(frozen=True)
class Cluster:
    """Ranks of one speed: seconds a weight of an example, by K, and a batch's."""

    name: str
    slope: dict[int, float]
    overhead: float
    network: Network
    cores: int | None = None  # more ranks take turns

    def seconds(self, shape: Shape, ranks: int, K: int) -> float:
        """The seconds of one mini-batch."""
        turns = ceil(ranks / self.cores) if self.cores else 1
        compute = self.overhead + self.slope[K] * K * shape.weights(ranks)
        return turns * compute + self.network.batch(shape, ranks, K)

    def speed_up(self, shape: Shape, ranks: int, K: int) -> float:
        """The speed of these ranks, as a multiple of that of one."""
        return self.seconds(shape, 1, K) / self.seconds(shape, ranks, K)

    def communication(self, shape: Shape, ranks: int, K: int) -> float:
        """Share of the messages in the time."""
        return self.network.batch(shape, ranks, K) / self.seconds(shape, ranks, K)

    def best_ranks(self, shape: Shape, K: int, limit: int = 1024) -> int:
        """Ranks (a power of two) beyond which more are no use: < 10% faster."""
        ranks = 1
        while ranks < limit:
            faster = self.seconds(shape, ranks, K) / self.seconds(shape, 2 * ranks, K)
            if faster < 1.1:
                break
            ranks *= 2
        return ranks

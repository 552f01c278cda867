"""What a mini-batch costs on a cluster: the models behind speedup.py and its siblings.

Ranks that share the output units (the paper's networks; `Cluster`):

    seconds = overhead + slope(K) * K * (a rank's weights) + messages

with the weights of section 3: ceil(|V| / M) rows of the output units and all of
what is below them, which every rank duplicates. The messages are an Allgather of three
float64 an example (or Allreduces of two and of one, where that is faster), and an
Allreduce of the gradients on the hidden and feature layers.

Ranks that share the examples (the default; `Costs`): on one computer, in whose memory
the parameters are once, each computes its examples and makes its share of the update,
and waits for the others twice:

    seconds = (update + example * K) / M + 2 * wait

Those of several computers make the whole update each, and send messages: an Allreduce
of the gradients that all have (a ring, which sends each byte twice) and an Allgatherv
of those of the rows that each has visited. These are larger than 64 KB, so that the
two models count latencies in different ways:

    seconds = update + example * K / M + messages

With ``average_every=k`` they send all parameters and moments once in k mini-batches of
their own instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from common.networks import Shape

LARGE = 4096  # bytes, from which Open MPI 5 scatters and gathers, about
# Latencies of a message of more than 64 KB: Open MPI announces it, and sends it after
# the answer.
ASKED = 3


@dataclass(frozen=True)
class Link:
    """Bytes a second, and seconds that a message takes in any case."""

    bandwidth: float
    latency: float

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


# Networks between computers.
LINKS = {
    "1 Gbit/s": Link(0.125e9, 60e-6),
    "10 Gbit/s": Link(1.25e9, 25e-6),
    "100 Gbit/s": Link(12.5e9, 2e-6),
}


@dataclass(frozen=True)
class Cluster:
    """Ranks of one speed: seconds a weight of an example, by K, and a batch's."""

    name: str
    slope: dict[int, float]
    overhead: float
    link: Link
    cores: int | None = None  # more ranks take turns

    def messages(self, shape: Shape, ranks: int, K: int) -> float:
        """Seconds of the messages of a mini-batch."""
        if ranks == 1:
            return 0.0
        # The softmax's maximum, the target's logit and the sum.
        two = self.link.allreduce(ranks, 16 * K) + self.link.allreduce(ranks, 8 * K)
        totals = min(self.link.allgather(ranks, 24 * K), two)
        return totals + self.link.allreduce(ranks, shape.gradients(K))

    def seconds(self, shape: Shape, ranks: int, K: int) -> float:
        """The seconds of one mini-batch."""
        turns = ceil(ranks / self.cores) if self.cores else 1
        compute = self.overhead + self.slope[K] * K * shape.weights(ranks)
        return turns * compute + self.messages(shape, ranks, K)

    def speed_up(self, shape: Shape, ranks: int, K: int) -> float:
        """The speed of these ranks, as a multiple of that of one."""
        return self.seconds(shape, 1, K) / self.seconds(shape, ranks, K)

    def communication(self, shape: Shape, ranks: int, K: int) -> float:
        """Share of the messages in the time."""
        return self.messages(shape, ranks, K) / self.seconds(shape, ranks, K)


@dataclass(frozen=True)
class Costs:
    """Seconds of an example and of an update, and bytes of a mini-batch."""

    example: float
    update: float
    summed: float  # bytes of the gradients that all ranks have
    gathered: float  # bytes of the rows that an example visits
    whole: float  # bytes of all parameters and moments
    K: int  # examples of a mini-batch

    @property
    def alone(self) -> float:
        """Seconds of a mini-batch of one rank."""
        return self.update + self.example * self.K

    def sent(self, ranks: int) -> float:
        """Bytes that a rank sends in a mini-batch."""
        share = (ranks - 1) / ranks
        return share * (2 * self.summed + self.gathered * self.K)

    def messages(self, ranks: int, link: Link) -> float:
        """Seconds of the messages of a mini-batch."""
        if ranks == 1:
            return 0.0
        steps = ASKED * (2 * log2(ranks) + 2 * (ranks - 1) ** 0.5)
        return self.sent(ranks) / link.bandwidth + steps * link.latency

    def on_cluster(self, ranks: int, link: Link) -> float:
        """Seconds of a mini-batch of ranks that send each other messages."""
        return self.update + self.example * self.K / ranks + self.messages(ranks, link)

    def in_memory(self, ranks: int, wait: float) -> float:
        """Seconds of a mini-batch of ranks on one computer."""
        return self.alone / ranks + (2 * wait if ranks > 1 else 0.0)

    def speed_up(self, ranks: int, link: Link) -> float:
        """How many times as fast as one rank, on a cluster."""
        return self.alone / self.on_cluster(ranks, link)

    def averaged(self, ranks: int, every: int, link: Link) -> float:
        """The same of ranks that take the mean once in `every` mini-batches."""
        if ranks == 1:
            return 1.0
        exchange = 2 * (ranks - 1) / ranks * self.whole / link.bandwidth
        exchange += 2 * log2(ranks) * link.latency
        return ranks * every * self.alone / (every * self.alone + exchange)

"""What a mini-batch costs ranks that share its examples: the model of a cluster.

On one computer, in whose memory the parameters are once, each rank computes its
examples, makes its share of the update, and waits for the others twice:

    seconds = (update + example * K) / M + 2 * wait

Those of several computers make the whole update each, and send messages: an Allreduce
of the gradients that all have (a ring, which sends each byte twice) and an Allgatherv
of those of the rows that each has visited:

    seconds = update + example * K / M + messages

With ``average_every=k`` they send all parameters and moments once in k mini-batches of
their own instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

# Latencies of a message of more than 64 KB: Open MPI announces it, and sends it after
# the answer.
ASKED = 3


@dataclass(frozen=True)
class Link:
    """Bytes a second, and seconds that a message takes in any case."""

    bandwidth: float
    latency: float


# Networks between computers.
LINKS = {
    "1 Gbit/s": Link(0.125e9, 60e-6),
    "10 Gbit/s": Link(1.25e9, 25e-6),
    "100 Gbit/s": Link(12.5e9, 2e-6),
}


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

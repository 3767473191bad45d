"""Examples on Kuhn poker's infosets whose fits have a known answer."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import torch

from deepcfr.config import NetworkConfig
from deepcfr.core.rng import generator, key
from deepcfr.core.types import Infosets, Samples
from deepcfr.game.base import infosets_at
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.network.memory import Memory
from deepcfr.network.networks import SplitNetwork, build_network

GAME = load_game("kuhn")
LEGAL = GAME.encoding.legal
NEWEST = 10  # the iteration at which all memories here are fitted
NODES = torch.arange(4).repeat_interleave(3)  # the 12 infosets
CARDS = torch.arange(3, dtype=torch.uint8).repeat(4)[:, None]
EVERY = Infosets(NODES, CARDS)


def infosets_of(game: PokerGame, count: int = 200, seed: int = 0) -> Infosets:
    """Infosets of random decision nodes with random deals, of all rounds."""
    deals = game.deal(count, key(seed, "deals"))
    node = torch.randint(game.tree.num_decisions, (count,), generator=generator(key(seed, "nodes")))
    return infosets_at(game, node, torch.arange(count), deals)


@dataclass(frozen=True)
class Data:
    """Noisy targets whose mean at each infoset moves with the iteration."""

    memory: Memory
    samples: Samples
    index: torch.Tensor  # infoset of each sample

    def mean(self, weight: torch.Tensor) -> torch.Tensor:
        """The weighted mean target of every infoset, [12, A]."""
        total = torch.zeros(12, 3).index_add_(0, self.index, self.samples.target * weight[:, None])
        return total / torch.zeros(12).index_add_(0, self.index, weight)[:, None]


def remembered(target: torch.Tensor, index: torch.Tensor, iteration: torch.Tensor, capacity: int = 5000) -> Data:
    samples = Samples(EVERY[index], target * LEGAL[NODES[index]], iteration.int())
    memory = Memory(GAME.encoding, capacity)
    memory.add(samples, stream=0)
    return Data(memory, samples, index)


def advantages(count: int = 3000, noise: float = 0.5, unit: float = 1.0) -> Data:
    draw = generator(key(0, "advantages"))
    index = torch.randint(12, (count,), generator=draw)
    iteration = torch.randint(1, NEWEST + 1, (count,), generator=draw)
    start, slope = torch.randn(12, 3, generator=draw), torch.randn(12, 3, generator=draw)
    target = start[index] + slope[index] * iteration[:, None] / NEWEST
    target = target + noise * torch.randn(count, 3, generator=draw)
    return remembered(unit * target, index, iteration)


def new_network(seed: int = 0, kind: str = "mlp") -> SplitNetwork:
    config = NetworkConfig(kind=kind, width=32, layers=2, card_width=1)  # type: ignore[arg-type]
    return build_network(GAME.encoding, config, generator(seed))


@torch.no_grad()
def predicted(network: SplitNetwork) -> torch.Tensor:
    """The network's outputs for every infoset in the targets' unit, 0 where illegal."""
    return network(EVERY) * network.scale * LEGAL[NODES]


@dataclass
class Downhill:
    """Examples that push the last biases down by exactly the learning rate in every step of Adam, and keep a record."""

    most: int = 1 << 40  # of a piece
    count: int = 2000
    drawn: list[torch.Tensor] = field(default_factory=list)  # indices of each call
    threads: set[int] = field(default_factory=set)
    denormals: set[bool] = field(default_factory=set)

    def __len__(self) -> int:
        return self.count

    @property
    def draws(self) -> int:
        return self.count

    @property
    def odds(self) -> torch.Tensor | None:
        return None

    def share(self, network: SplitNetwork) -> int:  # noqa: ARG002
        return self.most

    def scale(self) -> float:
        return 1.0

    def loss(self, network: SplitNetwork, index: torch.Tensor) -> torch.Tensor:
        self.threads.add(threading.get_ident())
        self.denormals.add(bool(torch.full((), 1e-40) * 1 > 0))
        self.drawn.append(index.clone())
        return network(EVERY[index % 12]).float().sum()

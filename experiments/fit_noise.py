"""The noise of single fits: how far strategies differ whose networks were fitted to one memory (docs/levers.md).

python -m experiments.fit_noise RUN     # a run with the memories of all its iterations
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

import torch

from deepcfr.core.errors import TrainingError
from deepcfr.core.rng import generator, key
from deepcfr.core.types import Infosets
from deepcfr.game.base import by_infoset
from deepcfr.game.poker import PokerGame
from deepcfr.measure.deviations import round_name
from deepcfr.network.examples import WEIGHTS, Examples, InfosetExamples
from deepcfr.network.fit import fit
from deepcfr.network.hand_examples import HandExamples
from deepcfr.network.networks import SplitNetwork, build_network
from deepcfr.policy.network import regret_matching
from deepcfr.run.folder import RunFolder
from deepcfr.solve.base import PLAYERS
from deepcfr.solve.deep_cfr import DeepCFR

FITS = 8
_SOME = 1 << 16  # infosets of a memory that are compared


@dataclass(frozen=True)
class FitNoise:
    """Distances between strategies of one player in one round: total variation, the mean over infosets of a memory.

    Infosets count by their weight in the loss, which is the opponent's reach times the weight of the iteration.
    """

    player: int
    round: int  # from 0
    name: str  # of the round
    between: dict[int, float]  # k to the distance of regret matching on two disjoint means of k networks
    to_target: dict[int, float]  # k to that of a mean to exact targets; empty without a panel


@dataclass(frozen=True)
class _Place:
    """Infosets of one round, [...] of any shape, at which networks are compared."""

    round: int
    outputs: Callable[[SplitNetwork], torch.Tensor]  # [..., A]
    legal: torch.Tensor  # bool, broadcasts to [..., A]
    weight: torch.Tensor  # [...]
    target: torch.Tensor | None  # [..., A], if it is exact


@torch.no_grad()
def fit_noise(
    solver: DeepCFR,
    fits: int = FITS,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[FitNoise]:
    """Fit each player's advantage network `fits` times to the memory as it is, and compare the strategies by round.

    The fits differ in their mini-batches only, or in the random weights too if `advantage.refit` is scratch; fine-tuned
    ones all start from the newest network, so what they share does not show. `progress` is told (done, total) fits.
    Raises TrainingError if there are fewer than two fits or no memory.
    """
    if fits < 2:
        raise TrainingError(f"Noise shows between at least 2 fits, but there are {fits}.")
    found = []
    for player in PLAYERS:
        weights = WEIGHTS[solver.config.cfr.weighting]
        examples = solver.memories.advantage_examples(player, weights, solver.iteration, solver.config.advantage)
        if not len(examples):
            raise TrainingError(f"The memory of player {player} is empty, so no network can be fitted to it.")
        networks = []
        for number in range(fits):
            networks.append(_fitted(solver, player, number, examples))
            progress(player * fits + number + 1, len(PLAYERS) * fits)
        found += [_compare(player, place, networks, solver) for place in _places(solver, examples)]
    return found


@torch.enable_grad()
def _fitted(solver: DeepCFR, player: int, number: int, examples: Examples) -> SplitNetwork:
    config, stream = solver.config, key(solver.config.seed, "fit noise", solver.iteration, player, number)
    if config.advantage.refit == "scratch":
        network = build_network(solver.game.encoding, config.network, generator(stream))
    else:
        network = copy.deepcopy(solver.advantage_networks[player])
    fit(network, examples, config.advantage, stream, solver.workers)
    return network


def _places(solver: DeepCFR, examples: Examples) -> Iterator[_Place]:
    """An even subset of a memory's infosets, by round."""
    rounds = by_infoset(solver.game, solver.game.round)
    weights = WEIGHTS[solver.config.cfr.weighting]
    if isinstance(examples, InfosetExamples):
        memory, legal = examples.memory, solver.game.encoding.legal
        rows = memory[slice(0, None, 1 + len(memory) // _SOME)]
        node = rows.infosets.node.long()  # [I], or [I, decisions] of one round each
        weight = weights(rows.iteration, solver.iteration)
        weight = weight if node.dim() == 1 else weight[:, None].expand_as(node)
        round_of = rounds[node if node.dim() == 1 else node[:, 0]]
        for round_ in sorted(set(round_of.tolist())):
            here = (round_of == round_).nonzero()[:, 0]
            yield _Place(round_, partial(_of_infosets, rows.infosets[here]), legal[node[here]], weight[here], None)
    else:
        assert isinstance(examples, HandExamples)
        for part in examples.parts:
            hands = part.memory[slice(0, None, 1 + len(part.memory) * len(part.nodes) // _SOME)]
            target = torch.zeros(len(hands), part.legal.numel(), device=part.nodes.device)
            target[:, part.place] = hands.values
            yield _Place(
                int(rounds[part.nodes[0]]),
                partial(_of_hands, hands.cards, part.nodes),
                part.legal,
                hands.reach * weights(hands.iteration, solver.iteration)[:, None],
                target.view(len(hands), *part.legal.shape) / hands.reach[..., None].clamp(min=1e-9),
            )


def _of_infosets(infosets: Infosets, network: SplitNetwork) -> torch.Tensor:
    return network(infosets)


def _of_hands(cards: torch.Tensor, nodes: torch.Tensor, network: SplitNetwork) -> torch.Tensor:
    """Outputs [I, n, A] of every hand at every node."""
    return network.joint(network.encode_cards(cards)[:, None], network.encode_nodes()[nodes])


def _compare(player: int, place: _Place, networks: list[SplitNetwork], solver: DeepCFR) -> FitNoise:
    game, matching = solver.game, partial(regret_matching, fallback=solver.config.cfr.fallback)
    name = round_name(game.rules, place.round) if isinstance(game, PokerGame) else f"round {place.round + 1}"
    outputs = [place.outputs(network) * network.scale for network in networks]
    legal = place.legal.expand_as(outputs[0])
    between, to_target, size = {}, {}, 1
    while size <= len(networks):
        groups = [outputs[start : start + size] for start in range(0, len(outputs) - size + 1, size)]
        played = [matching(torch.stack(group).mean(0), legal) for group in groups]
        if len(played) > 1:
            pairs = [_distance(one, other, place.weight) for one, other in combinations(played, 2)]
            between[size] = sum(pairs) / len(pairs)
        if place.target is not None:
            exact = matching(place.target, legal)
            to_target[size] = sum(_distance(one, exact, place.weight) for one in played) / len(played)
        size *= 2
    return FitNoise(player, place.round, name, between, to_target)


def _distance(one: torch.Tensor, other: torch.Tensor, weight: torch.Tensor) -> float:
    """The weighted mean total variation of strategies [..., A]; 0 if nothing has weight."""
    total = float(weight.double().sum())
    return float((0.5 * (one - other).abs().sum(-1) * weight).double().sum()) / total if total else 0.0


def lines(found: list[FitNoise]) -> Iterator[str]:
    """Distances in thousandths: two strategies that always differ have 1,000."""
    yield (
        f"Distances of strategies after {FITS} fits of one memory with different seeds, in thousandths: between two means "
        "of k networks, and to the memory's targets where these are exact"
    )
    width = max(len(one.name) for one in found) + 12
    sizes = sorted({*found[0].between, *found[0].to_target})
    yield " " * width + "".join(f"{f'k = {size}':>16}" for size in sizes)
    for one in found:
        for what, distances in (("", one.between), ("to targets", one.to_target)):
            row = "".join(f"{1000 * distances[size]:>16.1f}" if size in distances else " " * 16 for size in sizes)
            if distances:
                yield f"  {what or f'player {one.player}, {one.name}':<{width - 2}}{row}"


def main(path: Path) -> None:
    """Print the noise of a run. Raises CheckpointError for one without memories."""
    solver, _ = RunFolder.open(path).load_solver(print, memories=True)
    if not isinstance(solver, DeepCFR) or solver.config.advantage.bootstrapped:
        raise SystemExit(f"'{path}' is no run of Deep CFR whose memory has all iterations.")
    print("\n".join(lines(fit_noise(solver))))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Small games with bet sizes for tests, and a policy's best response by the list of all deals."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict
from itertools import permutations
from pathlib import Path

import numpy as np
import torch

from deepcfr.buckets.buckets import lossless
from deepcfr.game.base import infosets_at
from deepcfr.game.bet_size_betting import ACTOR, ENDED, ROUND, advance, first_positions, gain, legal_actions, nodes_of
from deepcfr.game.bet_size_game import BetSizePoker, ExplicitPoker, ImplicitPoker
from deepcfr.game.bet_sizes import BetSizeRules
from deepcfr.game.betting import NOT_TERMINAL
from deepcfr.policy.base import Policy
from deepcfr.policy.tables import AbstractPolicy
from deepcfr.sample.bet_size_tables import bet_size_layout
from deepcfr.sample.traversal_tree import showdowns

# One card each of five, one round, raises to 2, 4 or all-in 6 antes: its histories are its names.
ONE_ROUND = BetSizeRules(
    name="one-round", stack=6, bet_sizes=((2, 4),), measure=("chips",), max_raises=(3,), all_in=(True,), blinds=(1, 1),
    first_player=(0,), num_ranks=5, num_suits=1, hole_cards=1, board_cards=(0,), unit_chips=1, unit="antes",
    milli_unit="mA/g",
)  # fmt: skip
# One card each of six, a board card and a second round, with small stacks.
TWO_ROUNDS = BetSizeRules(
    name="two-rounds", stack=16, bet_sizes=((4, 8), (50, 100)), measure=("chips", "pot"), max_raises=(2, 2),
    all_in=(False, False), blinds=(1, 2), first_player=(0, 1), num_ranks=3, num_suits=2, hole_cards=1, board_cards=(0, 1),
    unit_chips=2, unit="big blinds", milli_unit="mbb/g",
)  # fmt: skip


def random_table(seed: int, game: BetSizePoker | None = None) -> AbstractPolicy:
    """A policy of random probabilities."""
    game = game or ImplicitPoker(TWO_ROUNDS)
    buckets = lossless(game.source.deck)
    size = bet_size_layout(game, buckets.counts).size
    return AbstractPolicy(game, buckets, np.random.default_rng(seed).random(size) ** 2, f"random {seed}")


def write_game(rules: BetSizeRules, path: Path) -> None:
    """Write a game as the TOML file that commands take; its name is the file's."""
    fields = {name: value for name, value in asdict(rules).items() if name != "name"}
    path.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in fields.items()))


def all_deals(game: BetSizePoker) -> np.ndarray:
    """Every deal, uint8 [B, 2 * hole + board]."""
    rules = game.rules
    return np.array(list(permutations(range(rules.num_cards), 2 * rules.hole_cards + sum(rules.board_cards))), np.uint8)


def rows_at(policy: Policy, positions: np.ndarray, cards: np.ndarray) -> np.ndarray:
    """The strategies [n, A] of who acts at `positions` [n, ENTRIES], each in the deal of its row of `cards`."""
    game = policy.game
    assert isinstance(game, BetSizePoker)
    nodes = nodes_of(positions)
    nodes = torch.from_numpy(game.listed(nodes) if isinstance(game, ExplicitPoker) else nodes)
    deals = game.deals_of(np.ascontiguousarray(cards))
    return policy.probabilities(infosets_at(game, nodes, torch.arange(len(cards)), deals)).numpy()


class Enumeration:
    """Best responses to a policy over all deals of a game; a player forgets nothing of the betting."""

    def __init__(self, policy: Policy) -> None:
        assert isinstance(policy.game, BetSizePoker)
        self.policy, self.game = policy, policy.game
        cards = all_deals(self.game)
        self.cards, self.hole = cards, self.game.rules.hole_cards
        self.results = showdowns(cards, self.hole, self.game.rules.num_suits)

    def nash_conv(self) -> float:
        """The sum of both best responses' gains, in thousandths of a unit."""
        return 1000 * sum(self.best_response(player) for player in (0, 1))

    def best_response(self, player: int) -> float:
        rows = np.arange(len(self.cards))
        position = first_positions(self.game.bets, 1)[0]
        return self._value(player, position, rows, np.full(len(rows), 1 / len(rows))) / self.game.rules.unit_chips

    def _seen(self, player: int, round_: int, rows: np.ndarray) -> np.ndarray:
        """The player's information: its cards, and the board so far."""
        board = sum(self.game.rules.board_cards[: round_ + 1])
        own = self.cards[rows, player * self.hole : (player + 1) * self.hole]
        return np.concatenate([own, self.cards[rows, 2 * self.hole : 2 * self.hole + board]], axis=1)

    def _value(self, player: int, position: np.ndarray, rows: np.ndarray, weight: np.ndarray) -> float:
        if position[ENDED] != NOT_TERMINAL:
            return float(sum(w * gain(position, player, r) for w, r in zip(weight, self.results[rows], strict=True)))
        actions = np.flatnonzero(legal_actions(self.game.bets, position[None])[0])
        after = {}
        for action in actions:
            after[action] = position.copy()
            advance(self.game.bets, after[action], action)
        if position[ACTOR] != player:
            strategy = rows_at(self.policy, np.tile(position, (len(rows), 1)), self.cards[rows])
            return sum(self._value(player, after[a], rows, weight * strategy[:, a]) for a in actions)
        groups = defaultdict(list)
        for index, seen in enumerate(self._seen(player, int(position[ROUND]), rows)):
            groups[tuple(seen)].append(index)
        return sum(
            max(self._value(player, after[a], rows[group], weight[group]) for a in actions) for group in groups.values()
        )


def decisions(game: BetSizePoker) -> list[np.ndarray]:
    """Every decision of a small game's betting."""
    found, stack = [], [first_positions(game.bets, 1)[0]]
    while stack:
        position = stack.pop()
        if position[ENDED] == NOT_TERMINAL:
            found.append(position)
            for action in np.flatnonzero(legal_actions(game.bets, position[None])[0]):
                after = position.copy()
                advance(game.bets, after, action)
                stack.append(after)
    return found

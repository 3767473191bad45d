"""Play many hands over the dealer protocol, and check the chips of each hand with pokerkit.

    python -m experiments.acpc_soak        # writes experiments/results/acpc_soak.json

Two agents with uniform strategies play over loopback, through the same dealer and client as other programs. In no-limit
hold'em one knows a few sizes only, and the other one raises by random legal amounts: a uniform agent of `hunl-ladder`, and
the shipped agents of no-limit hold'em. The script ends with an error at a hand that pokerkit counts differently, or at a
message that breaks the protocol. Then every hand is read from its history and compared with its line in the dealer's log.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from deepcfr.games.betting import NOT_TERMINAL, RAISE, legal_actions, raise_range
from deepcfr.games.ladder import LADDERS
from deepcfr.games.ladder_betting import LadderGame
from deepcfr.games.presets import load_game
from deepcfr.games.rules import PokerRules
from deepcfr.ladder.policies import ladder_scripted
from deepcfr.policies.base import UniformPolicy
from deepcfr.protocols.acpc import MatchState, Move
from deepcfr.protocols.acpc_game import move_of, position_of, read_betting
from deepcfr.protocols.agent import Agent
from deepcfr.protocols.client import Bot
from deepcfr.protocols.dealer import Terms
from deepcfr.protocols.hand_history import load_histories
from deepcfr.protocols.host import Records, Table, host_match
from deepcfr.protocols.record import log_line
from deepcfr.protocols.translation import TranslatingAgent
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import environment
from deepcfr.runs.models import shipped_agents

AGENTS = ("hunl-200", "hunl-200-deep")  # shipped agents
GAMES = ("fhp", "fhp-pot", "hunl-ladder", *AGENTS)  # limit, pot bets, and no-limit with raises of any size


class RandomRaiser:
    """Plays a random legal action in no-limit poker; half of the raises are small, the others of any size."""

    def __init__(self, rules: PokerRules, seed: int) -> None:
        self.rules, self._random = rules, np.random.default_rng(seed)

    def answer(self, state: MatchState) -> Move | None:
        betting, _ = read_betting(self.rules, state.betting)
        if betting.ended != NOT_TERMINAL or betting.actor != position_of(self.rules, state.position):
            return None
        action = int(self._random.choice(legal_actions(self.rules, betting)))
        if action == RAISE:
            least, most = raise_range(self.rules, betting)
            span = most - least if self._random.random() < 0.5 else min(most - least, 3 * least)
            action = least + int(self._random.integers(span + 1))
        return move_of(self.rules, betting, action)

    def warm_up(self) -> None: ...


def players(name: str, seed: int) -> tuple[PokerRules, tuple[Bot, Bot]]:
    """The rules of a match and its two bots."""
    if name in LADDERS or name in AGENTS:
        if name in AGENTS:
            player, _ = RunFolder.open(shipped_agents()[name]).load_player("own", print)
        else:
            player = ladder_scripted("uniform", LadderGame(LADDERS[name]))
        agent = TranslatingAgent(player, seed)
        return agent.rules, (agent, RandomRaiser(agent.rules, seed))
    game = load_game(name)
    return game.rules, (Agent(UniformPolicy(game), seed), Agent(UniformPolicy(game), seed + 1))


def soak(name: str, hands: int, seed: int) -> dict[str, Any]:
    """Play and check `hands` hands; returns the match as data."""
    rules, bots = players(name, seed)
    with tempfile.TemporaryDirectory() as folder:
        records = Records(log=Path(folder) / "log", phh=Path(folder))
        table = Table(rules, (name, "opponent"), bots)
        result = host_match(table, Terms(hands, seed), records, print)
        histories = load_histories(Path(folder) / "hands.phhs", rules)
        logged = [line for line in (Path(folder) / "log").read_text().splitlines() if line.startswith("STATE:")]
    if [log_line(rules, hand) for hand in histories] != logged or len(logged) != hands:
        raise SystemExit(f"The hand histories of {name} are not what the dealer logged.")
    showdowns = sum(hand.actions[-1] != 0 for hand in histories)
    facts = result.facts() | {"refereed": len(histories), "showdowns": showdowns}
    return facts | (bots[0].facts() if isinstance(bots[0], TranslatingAgent) else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hands", type=int, default=10_000)
    parser.add_argument("--games", nargs="+", default=list(GAMES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/acpc_soak.json"))
    asked = parser.parse_args()
    facts = {"environment": environment("cpu", 1), "matches": [soak(g, asked.hands, asked.seed) for g in asked.games]}
    asked.out.write_text(json.dumps(facts, indent=2) + "\n")
    print(f"Wrote {asked.out}.")


if __name__ == "__main__":
    main()

"""Play many hands over the dealer protocol, and check the chips of each hand with pokerkit.

    python -m experiments.acpc_soak        # writes experiments/results/acpc_soak.json

Two agents with uniform strategies play over loopback, through the same dealer and client as other programs. The script ends
with an error at a hand that pokerkit counts differently, or at a message that breaks the protocol. Then every hand is read
from its history and compared with its line in the dealer's log.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from deepcfr.games.presets import load_game
from deepcfr.policies.base import UniformPolicy
from deepcfr.protocols.dealer import Terms
from deepcfr.protocols.hand_history import load_histories
from deepcfr.protocols.host import Records, Table, host_match
from deepcfr.protocols.record import log_line
from deepcfr.runs.metrics import environment

GAMES = ("fhp", "fhp-pot")  # limit and no-limit


def soak(name: str, hands: int, seed: int) -> dict[str, Any]:
    """Play and check `hands` hands; returns the match as data."""
    game = load_game(name)
    table = Table(game, ("first", "second"), (UniformPolicy(game), UniformPolicy(game)))
    with tempfile.TemporaryDirectory() as folder:
        records = Records(log=Path(folder) / "log", phh=Path(folder))
        result = host_match(table, Terms(hands, seed), records, print)
        histories = load_histories(Path(folder) / "hands.phhs", game.rules)
        logged = [line for line in (Path(folder) / "log").read_text().splitlines() if line.startswith("STATE:")]
    if [log_line(game.rules, hand) for hand in histories] != logged or len(logged) != hands:
        raise SystemExit(f"The hand histories of {name} are not what the dealer logged.")
    showdowns = sum(hand.actions[-1] != 0 for hand in histories)
    return result.facts() | {"refereed": len(histories), "showdowns": showdowns}


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

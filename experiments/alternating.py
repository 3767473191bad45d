"""NashConv / 2 of OpenSpiel's CFR and CFR+ with alternating and simultaneous updates, on its Kuhn and Leduc.

python -m experiments.alternating
"""

from __future__ import annotations

import pyspiel
from open_spiel.python.algorithms import cfr
from open_spiel.python.algorithms.exploitability import exploitability

AT = (100, 500, 1_000)


def main() -> None:
    """Print one row of a table for each game, algorithm and kind of updates, in mpoints/g."""
    for name in ("kuhn_poker", "leduc_poker"):
        game = pyspiel.load_game(name)
        for plus in (False, True):
            for alternating in (True, False):
                solver = cfr._CFRSolver(game, alternating, linear_averaging=plus, regret_matching_plus=plus)
                found = []
                for t in range(1, AT[-1] + 1):
                    solver.evaluate_and_update_policy()
                    if t in AT:
                        found.append(1000 * exploitability(game, solver.average_policy()))
                kind = "alternating" if alternating else "simultaneous"
                print(
                    f"| {name} | CFR{'+' * plus} | {kind} | " + " | ".join(f"{x:.2f}" for x in found) + " |", flush=True
                )


if __name__ == "__main__":
    main()

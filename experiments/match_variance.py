"""The cost of an interval: variance of a match's result times CPU time, for sampled boards and for duplicate hands.

    python -m experiments.match_variance runs/a runs/b --boards 40 --hands 4000 --lines 2 8 32

Duplicate hands are measured with and without the control variate of the board, and boards are compared with hands without.
Both kinds of match average independent draws, so variance times CPU time does not depend on their number, and the ratio of
two such products is the ratio of times to the same interval. CPU time is that of one thread in this process, after a
warm-up; the ratio is of one run on one machine, and both sides have the same policies.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from deepcfr.evaluation.match import Match, boards_match, sampled_match
from deepcfr.policies.base import LadderPolicy
from deepcfr.runs.players import load_players

_WARM_UP = 2  # boards and hands of a first match, which compiles kernels


def main() -> None:
    """Measure both kinds of match between two runs and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", help="a run folder, or scripted:STYLE")
    parser.add_argument("second", help="another one")
    parser.add_argument("--boards", type=int, default=40)
    parser.add_argument("--hands", type=int, default=4000)
    parser.add_argument("--lines", type=int, nargs="+", default=[8], help="lines of a round; 0 for all")
    parser.add_argument("--policy", default="average")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    first, second = load_players([options.first, options.second], options.policy, print)
    if isinstance(first, LadderPolicy) or isinstance(second, LadderPolicy):
        parser.error("Only runs whose betting is listed have both kinds of match.")
    rows = []
    for control in (True, False):  # boards are compared with the last one

        def deal(count: int, control: bool = control) -> Match:
            return sampled_match(first, second, count, options.seed, control=control)

        hands = measure(deal, options.hands)
        rows.append({"hands": options.hands, "board luck taken off": control, **hands})
    for lines in options.lines:

        def play(boards: int, lines: int = lines) -> Match:
            return boards_match(first, second, boards, options.seed, lines=lines or None)

        found = measure(play, options.boards)
        rows.append({"boards": options.boards, "lines": lines or "all", **found, **ratio(hands, found)})
    print(json.dumps({"runs": [options.first, options.second], "seed": options.seed, "rows": rows}, indent=1))


def measure(play: Callable[[int], Match], count: int) -> dict[str, Any]:
    """The result of `play(count)`, its CPU seconds, and the product of the squared half interval and them."""
    play(_WARM_UP)
    start = time.process_time()
    match = play(count)
    seconds = time.process_time() - start
    return {
        "value": match.value,
        "interval": match.interval,
        "unit": match.unit,
        "cpu_seconds": seconds,
        "cost": match.interval**2 * seconds,
        "cpu_seconds_to_10": (match.interval / 10) ** 2 * seconds,
    }


def ratio(hands: dict[str, Any], boards: dict[str, Any]) -> dict[str, float]:
    """The ratio of CPU times of hands and boards for the same interval."""
    return {"hands_over_boards": hands["cost"] / boards["cost"] if boards["cost"] else float("inf")}


if __name__ == "__main__":
    main()

"""Monte Carlo CFR compiled, in one and in two threads, against a plain Python implementation of the same iterations.

    python -m experiments.mccfr_python        # writes experiments/results/mccfr_python.json

The plain implementation is `experiments.bench.plain_mccfr`; a test compares its regrets with the compiled solver's. Lin
(2024, section 6.1) reports a factor of about 60 for an iteration on an M1 Max, before and after all work on threads.
"""

from __future__ import annotations

import json
from pathlib import Path

from experiments.bench.threads import bench_threads


def main() -> None:
    facts = bench_threads(0, print)
    target = Path(__file__).parent / "results" / "mccfr_python.json"
    target.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()

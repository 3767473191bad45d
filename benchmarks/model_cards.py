"""Write the card of every shipped model from its own files, measuring its exact exploitability again.

python benchmarks/model_cards.py
"""

from __future__ import annotations

import json
from pathlib import Path

from deepcfr.evaluation.exploitability import exploitability
from deepcfr.runs.folder import RunFolder

MODELS = Path(__file__).parents[1] / "models"


def card(path: Path) -> str:
    """The card of one model."""
    run = RunFolder.open(path)
    policy, solver = run.load_policy("average", print)
    result = exploitability(policy, threads=2)
    first, second = result.best_response_values
    made = json.loads((path / "environment.json").read_text())
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and file.name != "card.md")
    return f"""# {run.source.name}

| | |
|---|---|
| game | {run.source.name}, measured in {result.unit} |
| policy | {result.policy} after {solver.iteration} iterations, {solver.nodes_touched:,} nodes touched |
| **exact NashConv** | **{result.nash_conv:.3f} {result.unit}** |
| exploitability, NashConv / 2 | {result.exploitability:.3f} {result.unit} |
| best-response values | {first:.3f} as player 0, {second:.3f} as player 1 |
| value to player 0 | {result.value:.3f} {result.unit} |
| boards | {result.boards:,}: {result.boards_used} |
| recipe | `{made["command"]}`, seed {run.config.seed}; all settings in `config.toml` |
| made with | commit {made["commit"]}, torch {made["versions"]["torch"]}, {made["processor"]}, {made["threads"]} threads |
| size | {size / 1e6:.2f} MB, without memories: it plays and is measured, but cannot be trained on |

Check it with `deepcfr exploitability models/{path.name}`.
"""


def main() -> None:
    """Write all cards."""
    for path in sorted(path.parent for path in MODELS.glob("*/config.toml")):
        (path / "card.md").write_text(card(path))


if __name__ == "__main__":
    main()

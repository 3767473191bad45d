"""Measure time and memory of card abstraction: features of all flop hands of Texas hold'em, and whole abstractions.

    python -m experiments.abstraction [--all]    # writes experiments/results/abstraction.json; --all adds hold'em's rounds
    python -m experiments.abstraction --part "clusterings of hold'em's rounds"      # prints one part

It uses two threads and a separate process for each part, so that peak memory is that of the part.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import cluster

from deepcfr.abstraction.buckets import round_classes
from deepcfr.abstraction.features import (
    STARTS,
    STEPS,
    Floats,
    cluster_features,
    finder,
    hands_on,
    lloyd,
    parts,
    showdowns,
    strength_features,
)
from deepcfr.abstraction.make import make_abstraction, opponent_clusters, round_makers
from deepcfr.games.presets import load_rules
from deepcfr.parallel import Workers
from deepcfr.runs.metrics import environment

RESULT = Path(__file__).parent / "results" / "abstraction.json"
THREADS = 2
FLOP, FLOPS = 1, 1_755
MOST, TEST = 20_000, 20_000  # clusters, and hands that fits do not see


def features() -> dict[str, float]:
    """EHS, EHS squared, equity histograms and OCHS of every flop hand of hold'em, over all turns and rivers."""
    rules = load_rules("hulh")
    workers = Workers(THREADS)
    start = time.perf_counter()
    full = showdowns(rules, workers)
    clusters = opponent_clusters(full, 0)
    ranked = time.perf_counter()
    hands = 0
    for part in parts(FLOPS, 16):
        hands += len(hands_on(rules, FLOP, np.arange(part.start, part.stop)))
    assert hands == round_classes(rules, FLOP)
    prepared = time.perf_counter()

    def strengths(part: slice) -> None:
        strength_features(full, FLOP, hands_on(rules, FLOP, np.arange(part.start, part.stop)))

    def ochs(part: slice) -> None:
        cluster_features(full, FLOP, hands_on(rules, FLOP, np.arange(part.start, part.stop)), clusters)

    list(workers.map(strengths, parts(FLOPS, 16)))
    done = time.perf_counter()
    list(workers.map(ochs, parts(FLOPS, 16)))
    return {
        "hands": hands,
        "ranking_and_opponent_clusters_seconds": ranked - start,
        "strengths_and_histograms_seconds": done - prepared,
        "ochs_seconds": time.perf_counter() - done,
        "seconds": time.perf_counter() - start - (prepared - ranked),
    }


def abstraction(game: str, buckets: tuple[int, ...]) -> dict[str, float]:
    """A whole abstraction, in memory."""
    start = time.perf_counter()
    made = make_abstraction(load_rules(game), buckets, 0, THREADS)
    return {"buckets": sum(made.counts), "seconds": time.perf_counter() - start}


def clusterings() -> dict[str, float]:
    """Mean squared distance of random hands from the nearest centre, and seconds of one core for the fit.

    By scikit-learn's k-means and mini-batches, and by the k-d tree, from the same first centres.
    """
    rules, workers = load_rules("hulh"), Workers(THREADS)
    found: dict[str, float] = {}
    for round_, maker in round_makers(rules, [1, 2, 3], 0, workers).items():
        vectors, _ = maker.sample(MOST, workers)
        seen, held = np.unique(vectors[TEST:], axis=0), vectors[:TEST]
        for count in (2_000, MOST):
            some = np.random.default_rng(0).choice(len(seen), STARTS * count, replace=False)
            first, _ = cluster.kmeans_plusplus(seen[some], count, random_state=0, n_local_trials=1)
            once = {"init": first, "n_init": 1, "random_state": 0}
            small = cluster.MiniBatchKMeans(count, **once, batch_size=2 * count, max_iter=3, max_no_improvement=None)
            fits: dict[str, Callable[[], Floats]] = {
                "mini-batches, 3 epochs": partial(_fitted, small, seen),
                "tree": partial(lloyd, seen, np.ones(len(seen)), first),
            }
            if count < MOST:
                fits["scikit-learn"] = partial(_fitted, cluster.KMeans(count, **once, max_iter=STEPS), seen)
            for name, fit in fits.items():
                start = time.process_time()
                centres = fit()
                label = f"round {round_ + 1}, {count:,} clusters, {name}"
                found[f"{label}: seconds"] = time.process_time() - start
                found[f"{label}: distance"] = float(((held - centres[finder(centres)(held)]) ** 2).sum(axis=1).mean())
    return found


def _fitted(fit: Any, vectors: Floats) -> Floats:
    centres: Floats = fit.fit(vectors).cluster_centers_.astype(np.float32)
    return centres


PARTS: dict[str, Callable[[], dict[str, float]]] = {
    "features of all flop hands": features,
    "fhp, 200 buckets": lambda: abstraction("fhp", (200,)),
    "fhp, 2,000 buckets": lambda: abstraction("fhp", (2_000,)),
    "fhp, 20,000 buckets": lambda: abstraction("fhp", (20_000,)),
}
LONG = {
    "hulh, 1,000 buckets on flop, turn and river": lambda: abstraction("hulh", (1_000,)),
    "hulh, 20,000 buckets on flop, turn and river": lambda: abstraction("hulh", (20_000,)),
    "clusterings of hold'em's rounds": clusterings,
}


def main(arguments: list[str]) -> None:
    """Run each part in a child process; in a child, run its part."""
    if arguments[:1] == ["--part"]:
        facts = (PARTS | LONG)[arguments[1]]()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(json.dumps(facts | {"peak_memory_gb": peak}))
        return
    found: dict[str, object] = {"environment": environment("cpu", THREADS), "seed": 0}
    for part in [*PARTS, *(LONG if "--all" in arguments else ())]:
        command = [sys.executable, __file__, "--part", part]
        found[part] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        print(part, found[part], flush=True)
    RESULT.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

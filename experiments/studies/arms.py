"""Folders and configurations of the runs of a study's arms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deepcfr.config import RunConfig, config_from_table
from experiments.studies.plans import SHARED
from experiments.studies.records import Arm, Budget, Settings, Study


def arm_path(root: Path, study: Study, budget: Budget, arm: Arm, seed: int) -> Path:
    """The run folder of an arm and a seed."""
    return root / (arm.home or study.name) / budget / f"{arm.name}-s{seed}"


def abstraction_path(root: Path, study: Study, budget: Budget, arm: Arm) -> Path:
    """The folder of an arm's abstraction, which seeds share."""
    return root / (arm.home or study.name) / budget / f"abstraction-{arm.buckets}"


def arm_config(root: Path, study: Study, budget: Budget, arm: Arm, seed: int) -> RunConfig:
    """The configuration of an arm's run. Raises ConfigError if the plan names an unknown setting."""
    if arm.tabular:
        settings = dict(arm.changes)
        if arm.buckets:
            settings["solve.abstraction"] = str(abstraction_path(root, study, budget, arm))
        return config_from_table(nested(settings | {"seed": seed}))
    home = study.plans[budget].settings if not arm.home else {}  # a shared arm is the same in every study
    return config_from_table(nested({**SHARED[budget], **home, **arm.changes, "seed": seed}))


def shared_config(budget: Budget) -> RunConfig:
    """The settings of all arms with networks at a budget."""
    return config_from_table(nested(SHARED[budget]))


def nested(settings: Settings) -> dict[str, Any]:
    """Settings by dotted key as a table of sections, without those that are None."""
    table: dict[str, Any] = {}
    for dotted, value in settings.items():
        section, _, key = dotted.rpartition(".")
        if value is not None:
            (table.setdefault(section, {}) if section else table)[key] = value
    return table

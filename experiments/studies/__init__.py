"""The experiments of the papers as data."""

from experiments.studies.arms import arm_config, arm_path, shared_config
from experiments.studies.plans import FIGURES, SHARED, base_arm
from experiments.studies.records import (
    BUDGETS,
    LEAST_SEEDS,
    Arm,
    Below,
    Budget,
    FewerNodes,
    LevelsOff,
    MostlyFits,
    Moves,
    NotAbove,
    Plan,
    Published,
    Statement,
    Study,
    StudyName,
    Test,
)
from experiments.studies.relatives import RELATIVES

STUDIES = FIGURES | RELATIVES

__all__ = [
    "BUDGETS",
    "LEAST_SEEDS",
    "SHARED",
    "STUDIES",
    "Arm",
    "Below",
    "Budget",
    "FewerNodes",
    "LevelsOff",
    "MostlyFits",
    "Moves",
    "NotAbove",
    "Plan",
    "Published",
    "Statement",
    "Study",
    "StudyName",
    "Test",
    "arm_config",
    "arm_path",
    "base_arm",
    "shared_config",
]

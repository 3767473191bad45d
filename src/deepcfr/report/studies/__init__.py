"""The experiments of the Deep CFR paper as data: nothing here runs or measures."""

from deepcfr.report.studies.arms import abstraction_path, arm_config, arm_path, change_of, find_arm, require_seeds
from deepcfr.report.studies.plans import STUDIES, base_arm
from deepcfr.report.studies.records import (
    BUDGETS,
    LEAST_SEEDS,
    Arm,
    Below,
    Budget,
    LevelsOff,
    NotAbove,
    Plan,
    Published,
    Statement,
    Study,
    StudyName,
    Test,
)

__all__ = [
    "BUDGETS",
    "LEAST_SEEDS",
    "STUDIES",
    "Arm",
    "Below",
    "Budget",
    "LevelsOff",
    "NotAbove",
    "Plan",
    "Published",
    "Statement",
    "Study",
    "StudyName",
    "Test",
    "abstraction_path",
    "arm_config",
    "arm_path",
    "base_arm",
    "change_of",
    "find_arm",
    "require_seeds",
]

"""The configuration of a run: plain records, read from TOML and validated once. Imports neither torch nor numba."""

from deepcfr.config.checks import config_problems, unread_settings, validate_config
from deepcfr.config.records import (
    OPENSPIEL,
    AnyConfig,
    CFRConfig,
    EvaluationConfig,
    FitConfig,
    MemoryConfig,
    NetworkConfig,
    NFSPConfig,
    PublicChanceConfig,
    RunConfig,
    RuntimeConfig,
    SolveConfig,
    TabularConfig,
)
from deepcfr.config.toml import (
    config_from_table,
    config_to_toml,
    load_any_config,
    load_config,
    load_solve_config,
    solve_config_from_table,
)

__all__ = [
    "OPENSPIEL",
    "AnyConfig",
    "CFRConfig",
    "EvaluationConfig",
    "FitConfig",
    "MemoryConfig",
    "NFSPConfig",
    "NetworkConfig",
    "PublicChanceConfig",
    "RunConfig",
    "RuntimeConfig",
    "SolveConfig",
    "TabularConfig",
    "config_from_table",
    "config_problems",
    "config_to_toml",
    "load_any_config",
    "load_config",
    "load_solve_config",
    "solve_config_from_table",
    "unread_settings",
    "validate_config",
]

"""The configuration of a run: plain records, read from TOML and validated once. Imports neither torch nor numba."""

from deepcfr.config.checks import (
    config_problems as config_problems,
    unread_settings as unread_settings,
    validate_config as validate_config,
)
from deepcfr.config.records import (
    DEFAULT_SEARCH as DEFAULT_SEARCH,
    OPENSPIEL as OPENSPIEL,
    AdvantageFitConfig as AdvantageFitConfig,
    CFRConfig as CFRConfig,
    EvaluationConfig as EvaluationConfig,
    FitConfig as FitConfig,
    MemoryConfig as MemoryConfig,
    NamedSolver as NamedSolver,
    NetworkConfig as NetworkConfig,
    NFSPConfig as NFSPConfig,
    PolicyName as PolicyName,
    PPOConfig as PPOConfig,
    RunConfig as RunConfig,
    RuntimeConfig as RuntimeConfig,
    SamplingConfig as SamplingConfig,
    SearchConfig as SearchConfig,
    SearchKind as SearchKind,
    TabularConfig as TabularConfig,
    ValueFitConfig as ValueFitConfig,
    names_class as names_class,
)
from deepcfr.config.toml import (
    config_from_table as config_from_table,
    config_to_toml as config_to_toml,
    load_config as load_config,
    read_settings as read_settings,
    settings_by_name as settings_by_name,
    signed_toml as signed_toml,
)

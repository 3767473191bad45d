"""What a study is: a figure of the paper, its arms, and the statements that it tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Budget = Literal["quick", "paper"]
StudyName = Literal["fig2", "fig3-left", "fig3-middle", "fig3-right", "fig4-left", "fig4-right", "nfsp"]
BUDGETS: tuple[Budget, ...] = get_args(Budget)
LEAST_SEEDS = 3  # with fewer there is no interval worth the name
Settings = Mapping[str, Any]  # dotted keys of a configuration, such as "cfr.traversals", with their values

DIGITISED = "read off the published curve"
STATED = "stated in the text"


@dataclass(frozen=True)
class Published:
    """What the paper says of an arm: a NashConv on FHP in mbb/g, or how many times that of the reference arm it is."""

    how: str  # how it was read
    nash_conv: float | None = None
    ratio: float | None = None
    curve: tuple[tuple[int, float], ...] = ()  # points of its curve: CFR iteration, NashConv on FHP in mbb/g


@dataclass(frozen=True)
class Arm:
    """One curve of a figure; its runs differ by their seed only."""

    name: str  # of its folders
    label: str
    changes: Settings = field(default_factory=dict)  # to the settings of the plan
    published: Published | None = None
    home: str = ""  # the study whose folder has its runs, if that is another one
    tabular: bool = False  # a run of a tabular solver: `changes` are all its settings
    buckets: int = 0  # of the later round's abstraction, which is made first; 0 takes none


@dataclass(frozen=True)
class Below:
    """The arm `better` has a smaller NashConv than `worse`: at an iteration, at the end, or after as many nodes."""

    better: str
    worse: str
    at: int | Literal["the end", "equal nodes"] = "the end"


@dataclass(frozen=True)
class NotAbove:
    """At the end NashConv of `arm` is above that of `than` by at most `margin` of it, with the whole 95 % interval."""

    arm: str
    than: str
    margin: float = 0.15


@dataclass(frozen=True)
class LevelsOff:
    """At the end the middle arm is below the small one, and the step to the large one gains less than those before it."""

    small: str
    middle: str
    large: str
    steps: int  # from small to middle, each as long as the one from middle to large


@dataclass(frozen=True)
class Filled:
    """The memories of an arm were full before its end, which is what it is about."""

    arm: str


Test = Below | NotAbove | LevelsOff | Filled


@dataclass(frozen=True)
class Statement:
    """Something the paper says, and what must be seen for it to hold: all the tests."""

    text: str
    source: str
    tests: tuple[Test, ...]
    otherwise: str = ""  # where it may fail at a budget, what differs there from the paper: said if it does not hold


@dataclass(frozen=True)
class Plan:
    """A study at one budget."""

    settings: Settings  # of all arms, over those of the budget
    arms: tuple[Arm, ...]
    reference: str  # the arm that ratios refer to
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class Study:
    """An experiment of the paper."""

    name: StudyName
    figure: str
    title: str
    about: str  # what is varied, and what else differs from the figure
    plans: Mapping[Budget, Plan]
    swept: str = ""  # a key with a number in each arm: the figure has the last NashConv over it

"""Records of a study: a figure of the paper, its arms, and the tested statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Budget = Literal["quick", "paper"]
StudyName = Literal[
    "fig2", "fig3-left", "fig3-middle", "fig3-right", "fig4-left", "fig4-right", "fhp", "v1", "lin", "family",
    "family-leduc", "family-fhp", "family-search", "family-mini", "family-kuhn",
]  # fmt: skip
BUDGETS: tuple[Budget, ...] = get_args(Budget)
LEAST_SEEDS = 3  # with fewer an interval is useless
Settings = Mapping[str, Any]  # dotted keys of a configuration, such as "sampling.traversals", with their values

DIGITISED = "curve"
STATED = "text"


@dataclass(frozen=True)
class PublishedCurve:
    """A curve of the paper on FHP, as others digitised it."""

    label: str
    points: tuple[tuple[int, float], ...]  # CFR iteration, NashConv in mbb/g
    nodes: tuple[float, float] = (
        0.0,
        0.0,
    )  # least and most nodes of an iteration by another figure; 0 if there is none


@dataclass(frozen=True)
class Published:
    """The published result of an arm: a NashConv on its game in thousandths, or its ratio to that of the reference arm."""

    how: str  # how it was read
    nash_conv: float | None = None
    ratio: float | None = None
    curves: tuple[PublishedCurve, ...] = ()


@dataclass(frozen=True)
class Arm:
    """One curve of a figure; its runs differ by their seed only."""

    name: str  # name of its folders
    label: str
    changes: Settings = field(default_factory=dict)  # changes to the settings of the plan
    published: Published | None = None
    home: str = ""  # the study whose folder has its runs, if not this one
    tabular: bool = False  # a run of a tabular solver: `changes` are all its settings
    buckets: int = 0  # buckets of the later round's abstraction, which is made first; 0 for none
    predicted: Mapping[int, str] = field(default_factory=dict)  # NashConv by iteration, written down before the runs


@dataclass(frozen=True)
class Below:
    """The arm `better` has a smaller NashConv than `worse`: at an iteration, at the end, at equal nodes, or in the mean
    over evaluations since memories are full.

    `paired` arms have the same iterates seed by seed, and their differences are judged.
    """

    better: str
    worse: str
    at: int | Literal["the end", "equal nodes", "full memories"] = "the end"
    paired: bool = False


@dataclass(frozen=True)
class NotAbove:
    """At the end the whole 95 % interval of `arm` is at most a share `margin` above the NashConv of `than`."""

    arm: str
    than: str
    margin: float = 0.15


@dataclass(frozen=True)
class FewerNodes:
    """To come down to the NashConv of `arm`, at its end or another iteration, `than` touches at least `factor` times as
    many nodes.
    """

    arm: str
    than: str
    factor: float = 1.0
    at: int | Literal["the end"] = "the end"


@dataclass(frozen=True)
class LevelsOff:
    """At the end the middle arm is below the small one, and the step to the large arm gains less than the earlier steps."""

    small: str
    middle: str
    large: str
    steps: int  # number of steps from small to middle, of the size of that from middle to large


@dataclass(frozen=True)
class Moves:
    """From the first evaluation with full memories to the last one NashConv falls, or rises, seed by seed."""

    arm: str
    rises: bool = False


@dataclass(frozen=True)
class MostlyFits:
    """SGD steps take more than half of the time of iterations in every run of an arm; average fits do not count."""

    arm: str


Test = Below | NotAbove | FewerNodes | LevelsOff | Moves | MostlyFits


@dataclass(frozen=True)
class Statement:
    """A statement of the paper; it holds if all its tests hold."""

    text: str
    source: str
    tests: tuple[Test, ...]
    #: differences from the paper at a budget, for which the study cannot refute it; they are stated if it does not hold
    otherwise: str = ""


@dataclass(frozen=True)
class Plan:
    """A study at one budget."""

    settings: Settings  # settings of all arms, which override those of the budget
    arms: tuple[Arm, ...]
    reference: str  # the arm to which ratios refer
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class Study:
    """An experiment of the paper."""

    name: StudyName
    figure: str  # of the paper; empty if the study is none of its figures
    title: str
    about: str  # the varied setting, and differences from the figure
    plans: Mapping[Budget, Plan]  # some studies have one budget only
    swept: str = ""  # a key with a number in each arm; the figure shows the last NashConv against it
    growing: bool = False  # runs take days: those that are not at their end count as far as they were evaluated

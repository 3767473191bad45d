"""The pages are true where a program can tell: links, commands, examples, settings, metrics and recorded figures."""

from __future__ import annotations

import dataclasses
import doctest
import json
import math
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from command_line import deepcfr
from deepcfr import __version__, cli
from deepcfr.config import RunConfig
from deepcfr.core.errors import ConfigError
from deepcfr.game.presets import load_rules
from deepcfr.game.rules import PRESETS
from deepcfr.measure.exploitability import Exploitability
from deepcfr.solve.base import TabularRecord
from deepcfr.solve.data import IterationRecord
from deepcfr.solve.nfsp import NFSPRecord

ROOT = Path(__file__).parents[1]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/algorithms").glob("*.md")),
]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
FILE_ENDINGS = {"py", "md", "json", "jsonl", "toml", "svg", "png"}
LOOP_KEYS = {  # what the training loop adds to a solver's record
    "average_loss", "average_examples", "average_fit_seconds", "evaluation", "evaluated_policy", "total_nodes_touched",
    "seconds", "resident_bytes",
}  # fmt: skip


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def code_blocks(text: str) -> list[str]:
    """The insides of fenced blocks."""
    return re.findall(r"^```[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def without_code(text: str) -> str:
    """The text without fenced blocks and code spans, which may hold brackets that are no links."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def broken_links(page: Path, text: str) -> list[str]:
    """The relative links of a page, with their anchors, that lead nowhere."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    return broken


def anchors(text: str) -> set[str]:
    """The names of a page's headings in links: lower case, without punctuation, hyphens for spaces."""
    headings = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(text: str) -> list[str]:
    """The arguments of every `deepcfr` line in the code blocks, without comments and redirections."""
    found = []
    for block in code_blocks(text):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True) if re.match(r"\s*(\S*/)?deepcfr ", line) else []
            end = next((i for i, word in enumerate(words) if word in (">", "|", "&&", "2>")), len(words))
            if words:
                found.append(shlex.join(words[1:end]))
    return found


def config_keys(record: type, prefix: str = "") -> set[str]:
    """The dotted names of all settings and sections of a configuration."""
    found = set()
    for name, hint in get_type_hints(record).items():
        found.add(prefix + name)
        if dataclasses.is_dataclass(hint):
            assert isinstance(hint, type)
            found |= config_keys(hint, f"{prefix}{name}.")
    return found


KEYS = config_keys(RunConfig)
SECTIONS = {key.partition(".")[0] for key in KEYS if "." in key}
MEASURED = {f"evaluation.{field.name}" for field in dataclasses.fields(Exploitability)}  # in a metrics line


def unknown_keys(text: str) -> list[str]:
    """The `section.key` names in code spans and blocks of a page that no configuration has."""
    code = "\n".join(code_blocks(text) + re.findall(r"`([^`\n]+)`", text))
    found = re.findall(rf"(?<![\w/.\"'])((?:{'|'.join(sorted(SECTIONS))})(?:\.[a-z][a-z_-]*)+)(?![\w/(])", code)
    names = [
        name.replace(".no-", ".").replace("-", "_") for name in found
    ]  # options have hyphens, and no- turns one off
    return [name for name in names if name not in KEYS | MEASURED and name.rpartition(".")[2] not in FILE_ENDINGS]


@pytest.mark.parametrize("name", NAMES)
def test_links_and_settings_exist(name: str) -> None:
    assert broken_links(ROOT / name, text_of(name)) == []
    assert unknown_keys(text_of(name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_commands_in_code_blocks_parse_in_a_folder_without_a_checkout(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So they name no option that is not there, and no settings or agents of a checkout, which a package lacks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for file, _, block in blocks_to_run(text_of(name)):
        if file:
            (tmp_path / file).write_text(block, encoding="utf-8")
    for command in commands(text_of(name)):
        parse(command.replace(LARGE_GAME, "liars_dice:LiarsDice"))


# Its parsing builds the game, for its defaults, in many seconds; `examples/test_phantom_tic_tac_toe.py` gives its name.
LARGE_GAME = "phantom_tic_tac_toe:PhantomTicTacToe"


def parse(command: str) -> None:
    assert re.findall(r"(?:^|[ :,])(?:models|configs)/\S+", command) == []
    assert type(cli.parse_command(shlex.split(command))).__module__.startswith("deepcfr.cli.")


def test_every_command_has_a_section_with_an_example() -> None:
    sections = re.split(r"^## deepcfr ", text_of("docs/cli.md"), flags=re.MULTILINE)[1:]
    assert {section.partition("\n")[0] for section in sections} == set(cli.COMMANDS)
    for section in sections:
        name = section.partition("\n")[0]
        assert any(command.partition(" ")[0] == name for command in commands(section)), name


def blocks_to_run(text: str) -> list[tuple[str, str, str]]:
    """File to save it in, if any, language and text of each fenced block that is marked `tested`."""
    return re.findall(r"^<!-- tested(?:: (\S+))? -->\n```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


# What makes a block long, and something shorter.
FEW = "--advantage.steps 50 --average.steps 50"
SHORTER = {
    "docs/cli.md": {
        "train kuhn --iterations 6": f"train kuhn --iterations 2 {FEW}",
        "resume runs/kuhn --iterations 8": "resume runs/kuhn --iterations 3",
    },
    "docs/tutorial.md": {
        "--iterations 10 --average.steps 500 --evaluation.at 5": f"--iterations 2 {FEW}",
        "resume runs/leduc --iterations 20": "resume runs/leduc --iterations 3",
        "--solver dcfr --iterations 200": "--solver dcfr --iterations 20",
        "--iterations 5 --average.steps 100": f"--iterations 2 {FEW}",
        '"iterations": 40': '"iterations": 20',
    },
}


@pytest.mark.parametrize("name", SHORTER)
def test_blocks_that_are_marked_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "runs").mkdir()
    names: dict[str, Any] = {}
    text = text_of(name)
    for whole, short in SHORTER[name].items():
        assert text.count(whole) == 1
        text = text.replace(whole, short)
    blocks = blocks_to_run(text)
    assert len(blocks) >= 8
    for file, language, block in blocks:
        if file:
            Path(file).write_text(block, encoding="utf-8")
        elif language == "python":
            exec(compile(block, name, "exec"), names)
        for line in block.splitlines() if language == "bash" else ():
            before, _, target = line.partition(" > ")
            program, *arguments = shlex.split(before, comments=True)
            assert program == "deepcfr"
            outcome = deepcfr(*arguments)
            assert outcome.status == 0, f"{line}\n{outcome.err}"
            if target:
                Path(target).write_text(outcome.out, encoding="utf-8")
    if name == "docs/tutorial.md":  # its own game is solved: 1/3, 1 and 2/3, where NashConv is 0
        low, high, answer = names["low"], names["high"], names["answer"]
        assert (low, high, answer) == pytest.approx((1 / 3, 1, 2 / 3), abs=0.2)
        first = 0.5 * max(1, 1 + answer) + 0.5 * max(-1, 1 - 3 * answer)
        second = 0.5 * (1 - low) - 0.5 * (1 - high) + max(-0.5 * (low + high), low - high)
        assert names["found"].nash_conv == pytest.approx(1000 * (first + second), abs=1e-3)
        assert 0 <= names["found"].nash_conv < 200


def test_the_game_definition_is_the_game_that_the_page_says(tmp_path: Path) -> None:
    ((_, _, text),) = blocks_to_run(text_of("docs/games.md"))
    path = tmp_path / "my-leduc.game"
    path.write_text(text, encoding="utf-8")
    (facts,) = [
        game for game in deepcfr("games", "--definition", path, "--json").json["games"] if game["game"] == "my-leduc"
    ]
    assert load_rules(str(path)) == replace(
        PRESETS["leduc"], name="my-leduc", num_ranks=4, num_suits=3, rank_symbols="2345", suit_symbols="cdh"
    )
    assert facts["exact_evaluation"]


def test_the_python_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", text_of("README.md"), re.DOTALL | re.MULTILINE)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert re.search(r"^\d+\.\d+ mA/g$", capsys.readouterr().out, re.MULTILINE)


def test_the_examples_of_the_api_are_as_shown() -> None:
    failed, tried = doctest.testfile(str(ROOT / "docs/api.md"), module_relative=False)
    assert (failed, tried > 12) == (0, True)


def test_the_readme_takes_five_minutes() -> None:
    assert (ROOT / "README.md").stat().st_size <= 6 * 1024


def test_every_page_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\(([^)\s]+\.md)\)", text_of("README.md")))
    linked |= {f"docs/{name}" for name in re.findall(r"\]\(([^)\s]+\.md)\)", text_of("docs/index.md"))}
    assert set(NAMES) - {"README.md"} - linked == set()


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("docs/algorithms/deep-cfr.md", IterationRecord),
        ("docs/algorithms/cfr.md", TabularRecord),
        ("docs/algorithms/nfsp.md", NFSPRecord),
    ],
)
def test_every_metric_is_explained(name: str, record: Any) -> None:
    keys = {field.name for field in dataclasses.fields(record)} | LOOP_KEYS | MEASURED
    if record is not IterationRecord:
        keys -= {key for key in LOOP_KEYS if key.startswith(("average_", "evaluated_"))}
    explained = {span for row in re.findall(r"^\|([^|]*)\|", text_of(name), re.MULTILINE) for span in spans(row)}
    assert keys - explained == set()


def spans(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_figures_of_our_own_are_recorded_ones() -> None:
    recorded = recorded_figures()
    pages = {name: text_of(name) for name in NAMES if name.startswith("docs/")}
    figures = {(name, figure) for name, text in pages.items() for figure in re.findall(r"\*\*([\d,]+\.\d\d)\*\*", text)}
    assert len(figures) >= 20
    assert [entry for entry in sorted(figures) if entry[1].replace(",", "") not in recorded] == []


def test_figures_of_the_readme_are_recorded_ones() -> None:
    text = re.sub(r"Python 3\.\d+ to 3\.\d+", "", without_code(text_of("README.md")))
    figures = re.findall(r"(?<![\d.])\d+\.\d\d(?!\d)", text)
    assert len(figures) >= 6
    assert set(figures) - recorded_figures() == set()


def recorded_figures() -> set[str]:
    """Every number in experiments/results and in the shipped models' cards with two decimals, rounded and rounded up."""
    numbers: list[float] = []
    for path in sorted((ROOT / "experiments/results").glob("*.json")):
        json.loads(path.read_text(encoding="utf-8"), parse_float=lambda word: numbers.append(float(word)))
    for path in sorted((ROOT / "models").glob("*/card.md")):
        numbers += map(float, re.findall(r"\d+\.\d+", path.read_text(encoding="utf-8")))
    return {f"{number:.2f}" for number in numbers} | {f"{math.ceil(100 * number) / 100:.2f}" for number in numbers}


def test_the_checks_find_what_is_wrong(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A heading, here\n", encoding="utf-8")
    links = "[a](page.md#a-heading-here) [b](page.md#none) [c](none.md) [d](https://example.org) `[e](x)`"
    assert broken_links(page, links) == ["page.md#none", "none.md"]
    block = "```bash\ndeepcfr train fhp \\\n  --out a  # why\n.venv/bin/deepcfr games > b\nmake run\n```\ndeepcfr no\n"
    assert commands(block) == ["train fhp --out a", "games"]
    with pytest.raises(SystemExit):
        parse("train kuhn --out a --cfr.no-such-option 3")
    with pytest.raises(ConfigError, match="neither a file nor a recipe"):
        parse("train kuhn --out a --config no-such-recipe")
    for agents in ("fhp resolve:models/fhp", "models/fhp fhp"):
        with pytest.raises(AssertionError):
            parse(f"match {agents}")
    assert unknown_keys("`cfr.weighting` `cfr.wighting` `network/reservoir.py` `network.py` cfr.x") == ["cfr.wighting"]
    assert unknown_keys("```toml\nadvantage.stepz = 3\n```") == ["advantage.stepz"]
    assert unknown_keys("`--cfr.keep-networks 1` `--cfr.keep-netwerks 1`") == ["cfr.keep_netwerks"]


def test_every_file_that_names_a_version_names_this_one() -> None:
    for name in ("pyproject.toml", "packages/agents/pyproject.toml", "CITATION.cff"):
        assert re.findall(r'^version(?: =|:) "?([\d.]+)"?$', text_of(name), re.MULTILINE) == [__version__], name

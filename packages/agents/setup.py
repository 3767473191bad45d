"""Put the larger agents of models/ into the package that is built; pyproject.toml has all else."""

from pathlib import Path
from shutil import copytree

from setuptools import setup
from setuptools.command.build_py import build_py

AGENTS = ("hulh", "hunl-200")
MODELS = Path(__file__).resolve().parents[2] / "models"


class BuildWithAgents(build_py):
    """The usual command, and a copy of the agents."""

    def run(self) -> None:
        super().run()
        for name in AGENTS:
            copytree(MODELS / name, Path(self.build_lib) / "deepcfr_agents" / name, dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithAgents})

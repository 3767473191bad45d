"""Put the small agents of models/ into the package that is built; pyproject.toml has all else."""

from pathlib import Path
from shutil import copytree

from setuptools import setup
from setuptools.command.build_py import build_py

AGENTS = ("kuhn", "leduc", "fhp")


class BuildWithAgents(build_py):
    """The usual command, and a copy of the agents; an editable install reads them where they are."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for name in AGENTS:
                copytree(Path("models") / name, Path(self.build_lib) / "deepcfr" / "agents" / name, dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithAgents})

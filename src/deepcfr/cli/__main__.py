"""`python -m deepcfr.cli`, the same as the command `deepcfr`."""

from deepcfr.cli import main

main()

"""Run the command line with `python -m barnabas.cli`, without the installed script."""

from barnabas.cli.main import main

main()

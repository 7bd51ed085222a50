"""`python -m barnabas.cli`, for where the script is not installed."""

from barnabas.cli.main import main

main()

"""The main program for spark-submit: `barnabas telemetry run`, with the same options.

    spark-submit --master spark://head:7077 --py-files barnabas.zip barnabas_submit.py \\
        --bootstrap broker:9092 --lake /mnt/lake

`barnabas telemetry package` writes both files. The master is spark-submit's.
"""

import sys

from barnabas.cli.main import main as command_line


def main() -> None:
    """Run the pipeline with the options of the command line."""
    command_line(["telemetry", "run", *sys.argv[1:]])


if __name__ == "__main__":
    main()

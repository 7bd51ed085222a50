"""Send the same requests to Apache Kafka and to Barnabas, and list where the answers differ.

    make compat-diff
    python -m tools.compat_diff --random 500 --seed 7

A dialogue (`steps.py`) is a generator that yields requests and receives answers. It is played twice
at the same time, once with each broker (`sides.py`, `playing.py`), so that it can put ids from an
answer into its next request. Some dialogues are written by theme (`dialogues/`), others are drawn
from a seed (`drawing.py`). Each pair of answers is compared field by field (`comparing.py`). What
docs/compatibility.md explains is counted (`explained.py`); the rest is listed (`report.py`).
"""

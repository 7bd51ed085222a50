"""Sends the same requests to Apache Kafka and to Barnabas, and lists where the responses differ.

    make compat-diff
    python -m tools.compat_diff --random 500 --seed 7

A dialogue (`steps.py`) is a generator that yields requests and receives responses. It runs twice at
the same time, once with each broker (`sides.py`, `playing.py`), so that it can use ids from a
response in its next request. Some dialogues are written by theme (`dialogues/`), others are drawn
from a seed (`drawing.py`). Each pair of responses is compared field by field (`comparing.py`).
Differences that docs/compatibility.md explains are counted (`explained.py`); the rest is listed
(`report.py`).
"""

"""A console's API over a made-up cluster, to work on the page without brokers.

python -m web.mock                     a believable cluster at 127.0.0.1:8089
python -m web.mock --rows 10000        as many topics and groups, some with hostile names
"""

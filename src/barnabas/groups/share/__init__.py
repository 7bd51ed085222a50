"""Share groups of KIP-932: members of a group read the same partitions together.

The path of one heartbeat: `share_protocol.py` finds the group and the member and checks its epoch,
`share_rebalance.py` raises the epochs if something changed, and computes the target assignment with
`simple_assignor.py`. A member takes over its target at once: no other member has to give up a
partition first. The result is a response and records (`share_group_records.py`); replay
(`share_replaying.py`) applies those to the group (`share_group.py`).

A partition is assigned only once its delivery state is initialized. The state is stored by a share
coordinator, which may be on another broker (`model/share_state.py`). The group stores which
partitions are initialized, which are being initialized, and of which topics the state is being
deleted (`partition_states.py`). `state_requests.py` asks the share coordinators, and continues with
an operation of its own when they answer; `settling.py` retries what is not done.
"""

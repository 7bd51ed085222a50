"""Consumer groups: their members, the partitions of each member, and the committed offsets.

machine     all groups of one partition of `__consumer_offsets`: replay and what concerns any group
directory   the groups themselves, of either protocol
classic     JoinGroup to LeaveGroup: members share out partitions among themselves
consumer    KIP-848: the coordinator shares them out, member by member
simple      a group without members, that only stores offsets
offsets     what was committed: `offset_store` keeps it, `offset_records` writes it,
            `offset_reading` tells it, `offset_expiry` ends it
"""

"""Consumer groups: their members, the partitions of each member, and the committed offsets.

group_machine  all groups of one partition of `__consumer_offsets`: replay, requests about any group
directory      the groups themselves, of either protocol
classic        JoinGroup to LeaveGroup: the leader of the group assigns the partitions
consumer       KIP-848: the coordinator assigns the partitions, member by member
simple         a group without members, which only stores offsets
offsets        committed offsets: `offset_store` keeps them, `offset_records` encodes them,
               `offset_reading` reads them, `offset_expiry` decides when they expire
"""

"""Which value belongs to which key, by the number that a stored key begins with."""

# Written by tools/generate_messages.py; edit that instead.

from barnabas.protocol.message import RecordFacts

GROUP_RECORDS: dict[int, RecordFacts] = {
    1: RecordFacts("offset_commit", "OffsetCommitKey", "OffsetCommitValue"),
    2: RecordFacts("group_metadata", "GroupMetadataKey", "GroupMetadataValue"),
    3: RecordFacts("consumer_group_metadata", "ConsumerGroupMetadataKey", "ConsumerGroupMetadataValue"),
    4: RecordFacts("consumer_group_partition_metadata", "ConsumerGroupPartitionMetadataKey", "ConsumerGroupPartitionMetadataValue"),
    5: RecordFacts("consumer_group_member_metadata", "ConsumerGroupMemberMetadataKey", "ConsumerGroupMemberMetadataValue"),
    6: RecordFacts("consumer_group_target_assignment_metadata", "ConsumerGroupTargetAssignmentMetadataKey", "ConsumerGroupTargetAssignmentMetadataValue"),
    7: RecordFacts("consumer_group_target_assignment_member", "ConsumerGroupTargetAssignmentMemberKey", "ConsumerGroupTargetAssignmentMemberValue"),
    8: RecordFacts("consumer_group_current_member_assignment", "ConsumerGroupCurrentMemberAssignmentKey", "ConsumerGroupCurrentMemberAssignmentValue"),
    10: RecordFacts("share_group_member_metadata", "ShareGroupMemberMetadataKey", "ShareGroupMemberMetadataValue"),
    11: RecordFacts("share_group_metadata", "ShareGroupMetadataKey", "ShareGroupMetadataValue"),
    12: RecordFacts("share_group_target_assignment_metadata", "ShareGroupTargetAssignmentMetadataKey", "ShareGroupTargetAssignmentMetadataValue"),
    13: RecordFacts("share_group_target_assignment_member", "ShareGroupTargetAssignmentMemberKey", "ShareGroupTargetAssignmentMemberValue"),
    14: RecordFacts("share_group_current_member_assignment", "ShareGroupCurrentMemberAssignmentKey", "ShareGroupCurrentMemberAssignmentValue"),
    15: RecordFacts("share_group_state_partition_metadata", "ShareGroupStatePartitionMetadataKey", "ShareGroupStatePartitionMetadataValue"),
    16: RecordFacts("consumer_group_regular_expression", "ConsumerGroupRegularExpressionKey", "ConsumerGroupRegularExpressionValue"),
}

TRANSACTION_RECORDS: dict[int, RecordFacts] = {
    0: RecordFacts("transaction_log", "TransactionLogKey", "TransactionLogValue"),
}

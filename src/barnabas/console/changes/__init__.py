"""What the console changes: topics, groups, replicas, leaders. Each change can be a dry run."""

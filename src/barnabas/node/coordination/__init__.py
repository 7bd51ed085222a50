"""The coordinators of groups and transactions on this broker, and transactions in partitions."""

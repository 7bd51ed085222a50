"""APIs that create, change and describe topics, configs and replicas."""

"""`barnabas partition`: replicas and leaders of partitions."""

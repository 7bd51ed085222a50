"""Routes requests and events; owns partitions and everything that waits."""

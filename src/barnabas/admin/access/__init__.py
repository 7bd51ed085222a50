"""Users, ACLs and quotas of a cluster."""

"""Authentication, authorization and quotas as state machines and functions without I/O."""

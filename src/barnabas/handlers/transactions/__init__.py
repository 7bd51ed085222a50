"""APIs of transactional and idempotent producers."""

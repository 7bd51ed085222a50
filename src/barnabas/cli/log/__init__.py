"""`barnabas log`: segment files on disk."""

"""The handlers of the APIs for share groups."""

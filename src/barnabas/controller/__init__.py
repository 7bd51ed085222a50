"""The controller's decisions: functions from the metadata image and a request to records."""

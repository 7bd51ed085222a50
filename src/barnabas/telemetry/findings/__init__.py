"""What windows mean: rules, thresholds, findings, alerts, and how right they are."""

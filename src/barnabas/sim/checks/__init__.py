"""The checks of simulated runs, during a run and at its end."""

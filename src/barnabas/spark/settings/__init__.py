"""Names of options and of settings of the client: what is known, and under which other name."""

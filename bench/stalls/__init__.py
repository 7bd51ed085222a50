"""What polite clients wait for while others, chores and a slow disk do their worst."""

"""Code that all commands share: options, errors, tables, progress."""

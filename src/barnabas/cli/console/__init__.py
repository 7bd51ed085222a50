"""`barnabas console`: the web console, and the passwords of its users."""

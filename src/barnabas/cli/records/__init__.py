"""`barnabas produce` and `barnabas consume`: write and read records."""

"""Tables of known option names and client settings, with the names that other clients give them."""

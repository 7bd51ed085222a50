"""Who uses the console: passwords, brokers' users, OpenID Connect, and sessions."""

"""The Spark streaming jobs from the topic to alerts, and the supervisor that runs them."""

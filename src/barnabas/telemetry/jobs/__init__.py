"""The streaming jobs on Spark, from the topic to alerts, and what starts and watches them."""

"""`barnabas sql`: run SQL on topics with Spark."""

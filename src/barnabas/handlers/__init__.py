"""The APIs, one file each. A file begins with the API's versions and deviations from Kafka."""

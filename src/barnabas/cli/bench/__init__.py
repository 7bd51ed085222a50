"""`barnabas bench`: measure a broker."""

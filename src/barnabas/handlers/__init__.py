"""One file an API, each headed by its versions and what it deviates in."""

"""HTTP of the console: answers, errors, checks of requests, static files, event streams."""

"""Produces load with real clients, and checks what was stored."""

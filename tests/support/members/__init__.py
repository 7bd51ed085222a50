"""Runs consumer group members on real clients, and checks what they processed."""

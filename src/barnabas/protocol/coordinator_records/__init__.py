"""What the coordinators store; written by tools/generate_messages.py, never by hand."""

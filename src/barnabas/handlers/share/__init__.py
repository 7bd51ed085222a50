"""The APIs of share groups (KIP-932), one file each."""

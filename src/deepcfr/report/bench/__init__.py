"""Speeds: ours against a peer in the same process."""

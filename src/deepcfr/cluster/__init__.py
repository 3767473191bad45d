"""Runs in many processes: pieces of traversals on a Ray cluster."""

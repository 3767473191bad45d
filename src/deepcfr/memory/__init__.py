"""Memories: bounded stores of samples for fits."""

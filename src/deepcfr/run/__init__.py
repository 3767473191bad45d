"""Runs: folders, checkpoints, metrics and the training loop."""

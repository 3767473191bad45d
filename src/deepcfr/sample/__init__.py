"""Sampling of histories by batched traversals, self-play and tabular Monte Carlo CFR."""

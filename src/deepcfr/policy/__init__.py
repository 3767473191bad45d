"""Policies of both players of a game: networks, tables, mixtures, ensembles, styles and scripted policies."""

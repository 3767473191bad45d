"""Raise-ladder games, whose nodes are computed: tables, traversals, solver, search, best response, and listed forms."""

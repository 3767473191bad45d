"""Raise-ladder games, whose betting tree is too large to list: layouts, traversals, policies, solver and best response."""

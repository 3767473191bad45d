"""Raise-ladder games, whose betting is stepped: layouts, traversals, policies in both forms, solver and best response."""

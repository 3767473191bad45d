"""Ranges in poker: exact counterfactual values of a public tree on a board, for all private hands at once."""

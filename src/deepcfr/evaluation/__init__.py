"""Measures of policies: exploitability, bounds on it, matches, tournaments and error budgets."""

"""Measures of policies: exploitability, bounds on it, matches and error budgets."""

"""Measures of policies."""

"""Histories: thousands of traversals advance together, one network call per depth."""

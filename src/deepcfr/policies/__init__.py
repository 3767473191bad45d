"""Policies: networks and tables, all answering the same question."""

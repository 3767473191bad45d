"""Measured average regret and the bound of theorem 1: runs and their section."""

"""Measured average regret beside the bound of theorem 1: runs and their section."""

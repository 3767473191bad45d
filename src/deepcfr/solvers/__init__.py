"""Solvers: generators that yield one record an iteration."""

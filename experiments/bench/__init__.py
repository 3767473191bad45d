"""Benchmarks of speed, most as ratios against another implementation on the same machine."""

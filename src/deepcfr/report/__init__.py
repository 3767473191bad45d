"""Reports and benchmarks."""

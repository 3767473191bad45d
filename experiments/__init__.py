"""The papers' experiments, benchmarks and their generated pages; part of a checkout, not of the library."""

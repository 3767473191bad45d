"""Reports of runs: charts, pages and error budgets."""

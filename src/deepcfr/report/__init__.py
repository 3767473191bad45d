"""Reports of runs: charts, pages, tables, matches and error budgets."""

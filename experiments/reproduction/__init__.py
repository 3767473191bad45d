"""The paper's experiments from run folders: means over seeds, verdicts, figures and the pages."""

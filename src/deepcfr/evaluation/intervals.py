"""Half-widths of confidence intervals of means, in standard errors."""

from __future__ import annotations

from statistics import NormalDist

NORMAL_95 = NormalDist().inv_cdf(0.975)  # on either side, for the mean of very many numbers


def student_t_95(degrees: float) -> float:
    """Standard errors on either side that hold 95 % of Student's t distribution with `degrees` > 0 of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.975))

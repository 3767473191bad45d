"""Two policies of one game against each other in both seats: exactly, over sampled boards, or over sampled hands."""

from deepcfr.evaluation.match.boards import boards_match
from deepcfr.evaluation.match.exact import exact_match
from deepcfr.evaluation.match.hands import sampled_match
from deepcfr.evaluation.match.record import Match

__all__ = ["Match", "boards_match", "exact_match", "sampled_match"]

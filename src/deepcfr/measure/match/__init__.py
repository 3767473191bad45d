"""Two policies of one game against each other in both seats: exactly, over sampled boards, or over sampled hands."""

from deepcfr.measure.match.boards import boards_match
from deepcfr.measure.match.exact import exact_match
from deepcfr.measure.match.hands import sampled_match
from deepcfr.measure.match.record import Match

__all__ = ["Match", "boards_match", "exact_match", "sampled_match"]

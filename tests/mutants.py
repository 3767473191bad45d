"""Break the program on purpose, one line at a time, and see that a test fails: `python tests/mutants.py [WORDS]`.

Every mutant is applied in a copy of the tree, and the tests named with it run there.
WORDS choose the mutants whose descriptions contain one of them. It takes half an hour.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    what: str  # is broken
    file: str  # under src/deepcfr
    old: str  # occurs once
    new: str
    tests: str  # arguments of pytest, under tests


MUTANTS = (
    # Own hands
    Mutant("a street begins with the ranges of the one before", "interop/own_hand_review.py",
           "_condition(ranges[action.player], solution, decision, place)", "pass", "interop/test_own_hands.py"),
    Mutant("stacks of a street as of the one before", "interop/own_hand_review.py",
           "pot, stacks = pot + 2 * min(put), stacks - min(put)", "pot += 2 * min(put)", "interop/test_own_hands.py"),
    Mutant("the user's own fields of PHH reach pokerkit", "interop/own_hands.py",
           'for name, value in fields.items() if not name.startswith("_")})', "for name, value in fields.items()})",
           "interop/test_own_hands.py"),
    Mutant("boards that are run twice are read on", "interop/own_hands.py",
           'text = text.partition("\\n*** FIRST ")[0]', "text = text", "interop/test_own_hands.py"),
    # Drill
    Mutant("the drill's other player acts by the range's frequencies", "web/drill.py",
           "shares = np.array(decision.hands[hands[decision.player]])",
           "shares = np.array(list(decision.frequencies.values()))", "web/test_drill.py"),
    # Many boards in one kernel
    Mutant("only the first boards of the last round updated", "boards/last_round.py",
           "pieces = list(pairwise([*range(first, last, _TOGETHER), last]))",
           "pieces = [(first, min(first + _TOGETHER, last))]", "solve/test_vector_cfr.py"),
    Mutant("a player learns from its own reach on the last boards", "boards/last_round.py",
           "other[x, u] = before[1 - player, x, up[u]]", "other[x, u] = before[player, x, up[u]]",
           "solve/test_vector_cfr.py"),
    # Weights and chance of iterations
    Mutant("panel means with plain instead of linear weights", "solve/memories.py",
           "return iteration_weight(t, weighting) / snapshot_weight(t, t, weighting), 1.0", "return 1 / t, 1.0",
           "solve/test_iterations.py"),
    Mutant("average_weighting ignored in the fit of the average network", "solve/deep_cfr.py",
           "strategy_examples(WEIGHTS[self.config.cfr.of_averages]", "strategy_examples(WEIGHTS[self.config.cfr.weighting]",
           "solve/test_iterations.py"),
    Mutant("the same deals in every iteration", "solve/data.py",
           'deals = game.deal(count, stream("deal"), first)',
           'deals = game.deal(count, key(self._config.seed, "deal"), first)', "solve/test_iterations.py"),
    Mutant("the same actions in every iteration of external sampling", "solve/data.py",
           'traverse(*where, stream("action"), job.t', 'traverse(*where, 1, job.t',
           "solve/test_iterations.py"),
    Mutant("the same boards in every iteration", "solve/data.py",
           'key(seed, "boards", job.t, job.traverser)', 'key(seed, "boards")', "solve/test_iterations.py"),
    Mutant("the advantage fit's stream without t", "solve/deep_cfr.py", 'self._stream(f"{purpose} fit", t, player)',
           'self._stream(f"{purpose} fit", player)', "solve/test_iterations.py"),
    Mutant("the average fit's stream without t", "solve/deep_cfr.py", 'self._stream("average fit", t)',
           'self._stream("average fit")', "solve/test_iterations.py"),
    Mutant("snapshots ignore cfr.fallback", "solve/snapshots.py",
           "RegretMatchingPolicy(self._game, networks, self._config.cfr.fallback)",
           "RegretMatchingPolicy(self._game, networks)",
           "solve/test_iterations.py"),
    Mutant("a worker keeps the networks of its first job", "solve/deep_cfr.py", "if job != self._job:",
           "if self._job is None:", "solve/test_follower.py"),
    Mutant("Linear CFR's weights without t", "network/examples.py", "return iteration.float() * (2.0 / newest)",
           "return torch.ones(len(iteration), device=iteration.device)", "network/test_fit.py -k weight"),
    Mutant("averages of DCFR weighted by t instead of t^2", "network/examples.py",
           "return 3 * (iteration.float() / newest).square()", "return 2 * (iteration.float() / newest)",
           "solve/test_iterations.py"),
    # Secrets of a hand
    Mutant("the page's state carries board cards before they are dealt", "web/table.py",
           '"board": texts(hand, hand.board),', '"board": texts(hand, hand.board_at(hand.rules.num_rounds - 1)),',
           "web/test_secrets.py"),
    Mutant("earlier steps show later boards", "web/table.py", '"board": texts(hand, hand.board_at(step.round)) if',
           '"board": texts(hand, hand.board) if', "web/test_secrets.py"),
    Mutant("the result is told before the end", "web/table.py", '"result": self._result() if hand.over else None,',
           '"result": {"agent_cards": texts(hand, hand.hole(1 - hand.person))},', "web/test_secrets.py"),
    Mutant("a seed that was shown predicts later hands", "web/table.py", 'key(self._secret, "web", number)',
           'key(self._secret, "web")', "web/test_secrets.py"),
    Mutant("seat cookie without HttpOnly", "web/play.py", "httponly=True", "httponly=False", "web/test_secrets.py"),
    Mutant("seat cookie without SameSite", "web/play.py", 'samesite="strict"', 'samesite="none"', "web/test_secrets.py"),
    # Sampling
    Mutant("advantages without the baseline", "sample/external.py",
           "advantage = (action_values[mine] - values[mine, None]) * game.legal[node]",
           "advantage = action_values[mine] * game.legal[node]", "sample/test_external.py"),
    Mutant("player 1's payoffs with player 0's sign in external sampling", "sample/external.py",
           "values[over] = sign * game.payoff(", "values[over] = game.payoff(", "sample/test_external.py"),
    Mutant("external sampling plays the traverser's own strategy only", "sample/external.py",
           "taken[mine] = game.legal[node[mine]]", "taken[mine] = weight[mine] > 0.2", "sample/test_external.py"),
    Mutant("actions drawn uniformly", "sample/external.py", "upper = probabilities.cumsum(1)",
           "upper = (probabilities > 0).float().cumsum(1)", "sample/test_external.py"),
    Mutant("outcome sampling does not divide by its probability", "sample/outcome.py",
           "gained = missed / level.drawn  #", "gained = missed  #", "sample/test_outcome.py -k unbiased"),
    Mutant("no baseline in the value of the opponent's decisions", "sample/outcome.py",
           "torch.where(level.mine, mean, expected + missed)", "torch.where(level.mine, mean, values[level.row])",
           "sample/test_history_values.py"),
    Mutant("history values of player 1 with the wrong sign", "sample/outcome.py",
           "batch.sign * traced[level.row, None].float()", "traced[level.row, None].float()",
           "sample/test_history_values.py solve/test_relatives.py"),
    Mutant("history values backed up from the payoffs of other actions", "sample/outcome.py",
           "(level.sigma * level.known).sum(1) + share * missed", "share * missed", "sample/test_history_values.py"),
    Mutant("history values lag behind the profile", "sample/outcome.py",
           "ratio = level.sigma.take_along_dim(taken, 1)[:, 0] / level.drawn",
           "ratio = level.sigma.take_along_dim(taken, 1)[:, 0]", "sample/test_history_values.py"),
    Mutant("a full window of history values drops the deepest steps", "sample/outcome.py",
           "whole = row.argsort(stable=True)", "whole = torch.arange(len(row))", "sample/test_history_values.py"),
    Mutant("bootstrapped advantages keep their negative part", "solve/first_round.py",
           "kept = outputs if signed else outputs.clamp(min=0)", "kept = outputs", "solve/test_relatives.py"),
    Mutant("all actions are taken in robust sampling", "solve/data.py",
           'job.t, sampling.actions)', 'job.t, 0)',
           "solve/test_relatives.py"),
    Mutant("values of drawn actions are not multiplied", "sample/external.py",
           "action_values *= torch.where(actor == traverser, inverse, 1.0)[:, None]", "pass",
           "sample/test_external.py"),
    Mutant("a bootstrapped fit begins in another unit", "network/networks.py",
           "parameter.mul_(self.scale / unit)", "pass", "network/test_networks.py"),
    Mutant("a prediction is fitted to the targets of the sums", "solve/deep_cfr.py",
           "            examples.targets = sampled", "            pass", "solve/test_relatives.py"),
    Mutant("a bootstrapped memory keeps its samples", "solve/deep_cfr.py",
           "examples.memory.clear()", "pass", "solve/test_relatives.py"),
    Mutant("a step of the excessive gap technique starts from uniform play", "solve/sequence_form.py",
           "self._responses(answer, temper, responses)", "self._responses(answer, temper)",
           "solve/test_sequence_form.py"),
    Mutant("the entropy of all infosets has one weight", "solve/sequence_form.py",
           "after[parent[infoset]] += weight[infoset]", "pass", "solve/test_sequence_form.py"),
    Mutant("advantage estimates run on into the next game", "solve/policy_gradient.py",
           "later = torch.cat([advantage[1:], advantage[:1]]).masked_fill(terminal, 0.0)",
           "later = torch.cat([advantage[1:], advantage[:1]])", "solve/test_policy_gradient.py"),
    Mutant("a policy's entropy is punished", "solve/policy_gradient.py",
           "alpha * new + objective.kl", "-alpha * new + objective.kl", "solve/test_policy_gradient.py"),
    Mutant("outcome sampling without exploration", "sample/outcome.py",
           "mixed = e * (legal / legal.sum(1, keepdim=True)) + (1 - e) * sigma", "mixed = sigma",
           "sample/test_outcome.py"),
    Mutant("copies of outcome sampling always rounded down", "sample/outcome.py",
           'copies = (inverse + addressed_uniforms(key(batch.stream, "copies"), address, node)).long()',
           "copies = inverse.long()", "sample/test_outcome.py -k unbiased"),
    # Memories
    Mutant("a reservoir replaces slots below its capacity only", "network/memory.py",
           "drawn = (chance * (arrival + 1)).long()", "drawn = (chance * self.capacity).long()",
           "network/test_memory.py"),
    Mutant("a reservoir off by one", "network/memory.py", "drawn = (chance * (arrival + 1)).long()",
           "drawn = (chance * arrival).long()", "network/test_memory.py"),
    Mutant("the reservoir's count is not advanced", "network/memory.py", "self.seen += count", "self.seen = count",
           "network/test_memory.py"),
    Mutant("merged targets without weights", "network/memory.py",
           'weighted = self.filled("target").flatten(0, -2).double() * weight[:, None]',
           'weighted = self.filled("target").flatten(0, -2).double()', "network/test_fit.py -k merging"),
    # Search
    Mutant("the gadget pays the opponent nothing outside", "search/subgame.py",
           "mean = chance * values + (1 - chance) * self.alternative", "mean = chance * values",
           "search/test_subgame.py -k held"),
    Mutant("the opponent of a gadget may always stay out", "search/subgame.py",
           "return self._least + (1 - self._least) * _shares", "return _shares", "search/test_subgame.py -k at_least"),
    Mutant("the opponent's alternative is what it plays, not its best response", "search/policy.py",
           "[(opponent, True)]", "[(opponent, False)]", "test_cli_search.py -k exploitability"),
    Mutant("search starts from uniform ranges", "search/policy.py",
           "play.down(self._strategy(part, before, lead))", "play.down(np.full((part.tree.num_edges, len(before)), 0.5))",
           "search/test_policy.py"),
    Mutant("sizes need not ascend where real bets are searched", "search/real_sizes.py",
           "higher = not (of_pot and state.raises) or", "higher = True or", "search/test_real_sizes.py -k in_its_game"),
    Mutant("search forgets what it played in the round before", "search/real_sizes.py",
           "if self.earlier is None or not", "if True or not", "search/test_real_sizes.py -k in_its_game"),
    Mutant("a replay gives player 1 the ranges before player 0's update", "search/subgame.py",
           "np.stack([new[0], now[1]])", "now", "search/test_cfr_d.py -k discounted"),
    Mutant("a sample's boards count as if all were in it", "search/cfr_d.py",
           "weight=boards[i].weight / chance[i]", "weight=boards[i].weight", "search/test_cfr_d.py -k from_a_sample"),
    Mutant("the values of boards that are not played are left out", "search/cfr_d.py",
           "weights, known - sampled[:-1])", "weights, 0 * known)", "search/test_cfr_d.py -k from_a_sample"),
    Mutant("a resumed run of CFR-D forgets the regrets on boards", "search/cfr_d.py",
           ', "regret-boards": self._regrets.values}', "}", "solve/test_saved_states.py -k cfr-d"),
    Mutant("the opponent resolves for itself", "search/policy.py",
           "opponent = 1 - resolver", "opponent = resolver", "search/test_policy.py"),
    # Losses, fits, networks
    Mutant("illegal actions count in the advantage loss", "network/fit.py",
           '(functional.mse_loss(predicted, advantage, reduction="none") * legal)',
           '(functional.mse_loss(predicted, advantage, reduction="none"))', "network/test_losses.py"),
    Mutant("the strategy loss has no weights", "network/fit.py",
           'strategy, reduction="none").sum(-1).mul(weight).sum()', 'strategy, reduction="none").sum(-1).sum()',
           "network/test_losses.py"),
    Mutant("illegal actions take part in the softmax", "network/fit.py",
           "return logits.masked_fill(~legal, -torch.inf).softmax(dim)", "return logits.softmax(dim)",
           "network/test_losses.py"),
    Mutant("the cosine falls to a half only", "network/fit.py",
           "0.5 * (1 + math.cos(math.pi * step / config.steps))",
           "0.5 * (1 + math.cos(math.pi * step / config.steps / 2))", "network/test_fit.py -k rate"),
    Mutant("Muon without the square root of its size", "network/fit.py",
           "alpha=-learning_rate * 0.2 * math.sqrt(max(matrix.shape))", "alpha=-learning_rate * 0.2",
           "network/test_muon.py"),
    # Regret matching and tables
    Mutant("regret matching plays negative advantages", "policy/network.py",
           "positive = advantage.clamp(min=0) * legal", "positive = advantage.abs() * legal",
           "policy/test_regret_matching.py"),
    Mutant("the uniform fallback plays illegal actions", "policy/network.py", "other = legal.to(advantage.dtype)",
           "other = torch.ones_like(advantage)", "policy/test_regret_matching.py"),
    Mutant("the first round's regrets without weights", "solve/first_round.py", "self.regret[edge] += weight * gain",
           "self.regret[edge] += gain", "solve/test_first_round.py"),
    Mutant("the first round's average without reach", "solve/first_round.py",
           "self.average[edge] += weight * reach[self.tree.edge_child[edge]]", "self.average[edge] += weight * sigma[edge]",
           "solve/test_first_round.py"),
    Mutant("mixtures do not weigh by reach", "policy/mixture.py",
           "weights = np.where(reached.sum(-1, keepdims=True) > 0, reached, plain)", "weights = plain",
           "policy/test_mixture.py"),
    # Games
    Mutant("one raise more than the cap", "game/betting.py", "state.raises < rules.max_raises[state.round]",
           "state.raises <= rules.max_raises[state.round]", "game/test_betting.py"),
    Mutant("folding without a bet", "game/betting.py", "fold = [FOLD] if state.to_call > 0 else []", "fold = [FOLD]",
           "game/test_betting.py"),
    Mutant("the pot counted without the call in a raise of its size", "game/betting.py",
           "called + max(2 * called * size // 100, state.last_raise)",
           "called + max(sum(state.chips) * size // 100, state.last_raise)", "game/test_pot_betting.py"),
    Mutant("an opening check exchanges who raised first", "game/bet_size_betting.py",
           "bets.first_player[position[ROUND]] ^ position[OPENED]", "bets.first_player[position[ROUND]]",
           "game/test_bet_sizes.py"),
    Mutant("ties are paid to player 0", "game/poker.py", "np.stack([lose, np.zeros_like(lose), win], axis=1)",
           "np.stack([lose, win, win], axis=1)", "game/test_poker.py"),
    Mutant("five to ace is no straight", "game/hands.py", "0b1000000001111] = 4", "0b1000000001111] = 0",
           "game/test_hands.py"),
    Mutant("a full house counts its second pair as the first", "game/hands.py",
           "return (FULL_HOUSE << 20) | (rank << 16) | (_top(rest) << 12)", "return (FULL_HOUSE << 20) | (rank << 16)",
           "game/test_hands.py"),
    Mutant("a card on the board may be held", "game/hands.py", "result[row] = -1 if dead else known[place]",
           "result[row] = known[place]", "game/test_hands.py"),
    # Evaluation
    Mutant("an opponent's action counts by what it did, not by its mean", "measure/hand_responses.py",
           "after = self.mean_value(state, answers) if counts",
           "after = self.value(state.after(action), state.round, total(answers[action])) if counts",
           "measure/test_hand_responses.py"),
    Mutant("a bet that may be taken for two sizes counts twice", "measure/hand_responses.py",
           "(after, chance * weights) for chance", "(after, weights) for chance",
           "measure/test_hand_responses.py -k either_of_two"),
    Mutant("a responder without bets raises all the same", "measure/local_best_response.py",
           "bets=own is None", "bets=True", "measure/test_local_best_response.py -k rule_gains"),
    Mutant("the responder by hands counts the pot of a fold as its own chips", "measure/hand_responses.py",
           "values[action] = other * float(folded.sum())", "values[action] = mine * float(folded.sum())",
           "measure/test_hand_responses.py"),
    Mutant("values of sampled lines are not divided by their chance", "measure/match/boards.py",
           "            values /= chance[some, None]\n", "", "measure/test_match_boards.py -k chance"),
    Mutant("rare boards count as often as common ones", "measure/check_down.py", "total += copies * won", "total += won",
           "measure/test_local_best_response.py"),
    Mutant("hands that share a card are counted twice", "boards/kernels.py",
           "anyone[u, k] = by_card[total, k] - by_card[first, k] - by_card[second, k] + reach[u, k] * twice",
           "anyone[u, k] = by_card[total, k] - by_card[first, k] - by_card[second, k]",
           "boards/test_kernels.py"),
    Mutant("NashConv of one player only", "measure/exploitability.py",
           "nash_conv = 1000 * sum(best)", "nash_conv = 2000 * best[0]",
           "measure/test_exploitability.py"),
    Mutant("intervals of few numbers by the normal distribution", "measure/intervals.py",
           "return float(stdtrit(degrees, 0.975))", "return NORMAL_95", "measure experiments -k interval"),
    # Runs
    Mutant("streams do not depend on the seed", "core/rng.py", "text = repr((int(seed), *purpose)).encode()",
           "text = repr(purpose).encode()", "core/test_rng.py"),
    Mutant("metrics after a checkpoint are kept twice", "run/metrics.py", 'if record["iteration"] <= iteration]',
           'if record["iteration"] <= iteration + 1]', "run/test_metrics.py"),
    Mutant("a torn last line of metrics stops the reader", "run/metrics.py",
           "        except (ValueError, RecursionError):\n            line = None",
           "        except KeyError:\n            line = None", "run/test_metrics.py"),
    Mutant("what a run goes on with is not noted", "run/train.py",
           "        run.note_resumption(solver.iteration)\n", "", "run/test_life.py -k kill_9"),
    Mutant("NFSP goes on with the first target networks", "solve/nfsp.py",
           'load_weights(self.targets[player], saved.part(f"target-{player}."), f"target-{player}.")', "pass",
           "run/test_life.py -k nfsp"),
    Mutant("values of histories are unknown when a run goes on", "solve/deep_cfr.py",
           "self.values.fitted = memories and self.iteration > 0", "self.values.fitted = False",
           "run/test_life.py -k dream"),
    # Streams, axes and steps that one line may lose
    Mutant("16-bit averages are rounded alike in every iteration", "solve/full_width.py",
           'key(seed, "rounding", t, player,', 'key(seed, "rounding", player,',
           "solve/test_vector_cfr.py -k stream_of_its_own"),
    Mutant("actions of a node are rounded with the same bits", "boards/tables.py",
           "np.uint32(stream + edge * 0x9E3779B1)", "np.uint32(stream)", "boards/test_tables.py"),
    Mutant("a round without new cards forgets the emphasis of its board", "boards/public_chance.py",
           "return [replace(later[0], emphasis=board.emphasis)]", "return [later[0]]",
           "boards/test_public_chance.py -k emphasis"),
    Mutant("the interval of a local best response is over the games of both seats", "measure/local_best_response.py",
           "(*won, won.mean(0))", "(*won, won.ravel())", "measure/test_hand_responses.py -k intervals"),
    Mutant("octaves of the pot begin one chip later", "sample/bet_size_tables.py",
           "layout.octave << (pot + 1) <= position[START]", "layout.octave << (pot + 1) < position[START]",
           "sample/test_bet_size_tables.py -k octave"),
    Mutant("the unit of targets is that of the first samples", "network/examples.py",
           "some = slice(0, None, 1 + len(memory) // most)", "some = slice(0, most)",
           "network/test_examples.py -k large_memory"),
    Mutant("all chunks of traversals have the same deals", "solve/data.py", 'game.deal(count, stream("deal"), first)',
           'game.deal(count, stream("deal"), 0)', "solve/test_iterations.py"),
    Mutant("the moments of Adam are not restored", "solve/self_play.py",
           'self._optimizer.load_state_dict(self._optimizer.state_dict() | {"state": moments})', "pass",
           "solve/test_saved_states.py -k ppo"),
    Mutant("tables never start from win rates", "solve/mccfr.py",
           "if self.iteration == 0 and self.settings.initial != UNIFORM:", "if False:", "sample/test_initial.py"),
    Mutant("games are played with player 1's strategy for both", "sample/external.py",
           "sample_actions(strategies[player](node[row], row), chance)",
           "sample_actions(strategies[1](node[row], row), chance)", "solve/test_episodes.py"),
    # What other programs and pages see
    Mutant("folded hands are shown to the opponent", "interop/dealer.py", "or state.ended == SHOWDOWN else",
           "or state.ended else", "interop/test_dealer.py -k showdown_shows"),
    Mutant("a server on loopback answers to any name", "web/app.py",
           "(*LOOPBACK, host) if _is_loopback(host) else ANY_HOST", "ANY_HOST", "web/test_app.py -k no_other_name"),
    Mutant("the comparison of origins ignores ports", "web/app.py",
           'origin.partition("://")[2] != headers.get("host")',
           'origin.partition("://")[2].partition(":")[0] != headers.get("host", "").partition(":")[0]',
           "web/test_app.py -k page_of_this_host"),
    Mutant("shares of a lock are in the order of the file", "search/spot_locks.py",
           "[shares[action] for action in actions]", "[*shares.values()]", "search/test_spot_values.py -k any_order"),
    Mutant("regrets of the gadget are not discounted", "search/subgame.py",
           "        self._regret *= np.where(self._regret > 0, positive, negative)\n        self._regret += np.stack",
           "        self._regret += np.stack", "search/test_subgame.py -k discounted"),
    # Spots
    Mutant("frequencies of a spot ignore card removal", "boards/kernels.py", "for weight in (own * met if reached else",
           "for weight in (own if reached else", "search/test_spot.py -k deals_that_are_possible"),
    Mutant("a hand that does not come plays on as it happens", "search/subgame.py",
           "best_replies(own, tree.arrays, free, _TIED * most * met, values[player], play.sigma)",
           "pass", "search/test_spot_values.py -k after_every_action"),
    Mutant("half of a spot's exploitability is told", "search/spot_solver.py", "/ (2 * self.spot.pot), 0.0)",
           "/ (4 * self.spot.pot), 0.0)", "search/test_spot_values.py -k recursion"),
    Mutant("means over flops ignore the hands that are possible", "run/spot_table.py",
           "spot.weight * spot.matchups for spot in self.spots])", "spot.weight for spot in self.spots])",
           "run/test_many_spots.py -k all_deals"),
    Mutant("strong hands keep the draws of their number", "buckets/texture.py",
           "np.where(strong, classes - STRAIGHTS * (DRAWS - 1), classes // DRAWS)", "classes // DRAWS",
           "web/test_hand_kinds.py -k made_hand"),
    Mutant("ranges as text leave out how often an action is taken", "web/spot_view.py", "table.reach * share",
           "table.reach", "web/test_spots.py -k line_for_every"),
    Mutant("a paused spot goes on", "web/spot_shelf.py", "while self.paused is not None and not self.stopped:",
           "while False:", "web/test_spots.py -k wait_for_their"),
    Mutant("a kind of hands is shown with all others", "web/spot_view.py", "table if held is None else table.only(held)",
           "table", "web/test_hand_kinds.py -k alone"),
    Mutant("means of a second decision ignore who gets there", "run/spot_table.py",
           'return self.frequencies("").get(line, 0.0) if line else 1.0', "return 1.0",
           "run/test_many_spots.py -k by_hand"),
    Mutant("a spot that was stopped counts as solved", "search/spot_solver.py", "found.exploitability > found.goal and",
           "False and", "run/test_many_spots.py -k before_its_goal"),
    Mutant("weights of a subset of flops are not raked", "search/flops.py",
           "weights, change = weights * factor, max(change, np.abs(factor - 1).max())", "change = 0.0",
           "search/test_flops.py -k keeps"),
    Mutant("a later street begins after another line", "search/spot_tree.py", "roots = first = before.leaves[[x]]",
           "roots = first = before.leaves[[0]]", "search/test_spot_tree.py -k means_of_those"),
    Mutant("ranges of a later street are those of the spot", "search/spot_tree.py",
           "reach = np.ascontiguousarray(before.reach[:, [x]][:, :, board.up])",
           "reach = np.ascontiguousarray(solver.reach[:, :, board.up])", "search/test_spot_tree.py -k means_of_those"),
    Mutant("amounts of later streets include those before", "search/spot_solver.py", "(after[player] - before) / rules",
           "(after[player] - self.spot.half_pot) / rules", "search/test_spot_tree.py -k the_spot_there"),
    Mutant("each line of search keeps as many solutions as all may", "search/lines.py", "share=1 / KEPT_LINES)",
           "share=1)", "search/test_line_search.py -k large_game"),
    Mutant("a range with a plus lacks its last class", "search/spot_ranges.py", "c, d = a, a - 1", "c, d = a, a - 2",
           "search/test_spot_texts.py -k pokerkit"),
    Mutant("the ranks of a part of a range move apart", "search/spot_ranges.py", "if c - a != d - b:", "if False:",
           "search/test_spot_texts.py -k what_is_no_range"),
    Mutant("spots wait for torch", "core/parallel.py", """def _one_core() -> None:
    if "torch" in sys.modules:""", """def _one_core() -> None:
    if True:""", "test_cli.py -k no_library"),
    Mutant("a hand that is dealt again counts", "web/table.py", "self._begin(seed, number, counts=False)",
           "self._begin(seed, number, counts=True)", "web/test_table.py -k beside_the_session"),
)  # fmt: skip


def first_failure(tree: Path, tests: str, kernels: str | None) -> str | None:
    """The first of some tests that fails in a tree, or None if all pass."""
    words = tests.split()
    paths = [
        word if word.startswith("-") or before == "-k" else f"tests/{word}"
        for before, word in zip(["", *words], words, strict=False)
    ]
    environment = os.environ | {"PYTHONPATH": str(tree / "src")} | ({"NUMBA_CACHE_DIR": kernels} if kernels else {})
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "--tb=no", "-p", "no:cacheprovider", *paths]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    assert failed, done.stdout + done.stderr
    return failed[1]


def killer(mutant: Mutant, tree: Path) -> str | None:
    """The first test that fails on a mutant, or None if all pass."""
    path = tree / "src/deepcfr" / mutant.file
    whole = path.read_text(encoding="utf-8")
    assert whole.count(mutant.old) == 1, f"{mutant.file} does not contain once: {mutant.old}"
    path.write_text(whole.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        with tempfile.TemporaryDirectory() as kernels:  # a changed kernel must be compiled into its callers again
            return first_failure(tree, mutant.tests, kernels if "njit" in whole else None)
    finally:
        path.write_text(whole, encoding="utf-8")


def copy_of_the_tree(folder: Path) -> Path:
    """The files that git knows, as they are now."""
    found = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, found.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder


def main() -> None:
    """Try the mutants and print a row of a table for each."""
    words = sys.argv[1:]
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.what for word in words)]
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_of_the_tree(Path(folder) / "tree")
        for tests in dict.fromkeys(mutant.tests for mutant in chosen):
            failed = first_failure(tree, tests, None)
            assert failed is None, f"{failed} fails without a mutant"
        for mutant in chosen:
            test = killer(mutant, tree)
            survived += test is None
            print(f"| {mutant.what} | `{mutant.file}` | {f'`{test}`' if test else '**survived**'} |", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} mutants are killed.")
    sys.exit(survived > 0)


if __name__ == "__main__":
    main()

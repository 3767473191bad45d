"""Fits to hands: the gradient is that of Algorithm 1's loss over infosets, weighted by how often each is reached."""

import pytest
import torch

from deepcfr.boards.public_chance import RoundPart
from deepcfr.boards.rounds import round_trees
from deepcfr.config import FitConfig, NetworkConfig
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import generator
from deepcfr.core.types import HandSamples, Infosets
from deepcfr.game.presets import load_game
from deepcfr.network.examples import linear_weights
from deepcfr.network.fit import fit, masked_softmax
from deepcfr.network.hand_examples import HandExamples, HandLoss, HandPart, hand_advantage_loss, hand_strategy_loss
from deepcfr.network.memory import HandMemory
from deepcfr.network.networks import SplitNetwork, build_network

GAME = load_game("leduc")
LEGAL = GAME.encoding.legal
NEWEST = 5


def part_of(player: int, round_: int, count: int, *, least: float = 0.01, board: bool = True) -> HandPart:
    """A memory of random hands: strategies and reach of any kind, targets of about one."""
    tree = round_trees(GAME)[round_]
    part = RoundPart.of(tree, player)
    draw = generator(10 * player + round_)
    reach = least + (1 - least) * torch.rand(count, len(part.nodes), generator=draw).square()
    target = torch.rand(count, len(part.edges), generator=draw)
    cards = torch.randint(6, (count, 2), generator=draw).to(torch.uint8)
    if not board or round_ == 0:
        cards[:, 1] = 255
    memory = HandMemory(2, len(part.edges), len(part.nodes), count)
    iteration = torch.randint(1, NEWEST + 1, (count,), generator=draw).int()
    memory.append(HandSamples(cards, target * reach[:, part.edge_node], reach, iteration))
    nodes = torch.from_numpy(tree.nodes[part.nodes])
    place = torch.from_numpy(part.edge_node * LEGAL.shape[1] + tree.edge_action[part.edges])
    return HandPart(memory, nodes, LEGAL[nodes], place)


def examples_of(parts: list[HandPart], loss: HandLoss = hand_advantage_loss, *, scaled: bool = True) -> HandExamples:
    return HandExamples(parts, loss, linear_weights, NEWEST, scaled=scaled)


def drawn(examples: HandExamples, hand: torch.Tensor) -> torch.Tensor:
    """Indices of the examples `hand`, each by one of its indices."""
    return hand * (examples.draws // len(examples)) + 5


def network() -> SplitNetwork:
    return build_network(GAME.encoding, NetworkConfig(kind="mlp", width=16, layers=2), generator(3))


def plain_loss(parts: list[HandPart], net: SplitNetwork, index: torch.Tensor, *, softmax: bool) -> torch.Tensor:
    """The weighted squared error, infoset by infoset, of rows that repeat as those of the examples do."""
    longest = max(len(part.memory) for part in parts)
    total = torch.zeros(())
    for part in parts:
        hands = part.memory[index * len(part.memory) // longest]
        for row in range(len(index)):
            weight = 2 * hands.iteration[row] / NEWEST
            for n, node in enumerate(part.nodes):
                output = net(Infosets(node[None], hands.cards[row : row + 1]))[0]
                output = masked_softmax(output, part.legal[n]) if softmax else output
                for action in part.legal[n].nonzero()[:, 0]:
                    edge = int((part.place == n * LEGAL.shape[1] + action).nonzero()[0, 0])
                    target = hands.values[row, edge] / hands.reach[row, n] / net.scale
                    total = total + weight * hands.reach[row, n] * (output[action] - target) ** 2
    return total


@pytest.mark.parametrize("softmax", [False, True])
def test_the_gradient_is_that_of_the_weighted_loss_over_infosets(softmax: bool) -> None:
    parts = [part_of(0, 0, 20), part_of(0, 1, 50)]
    examples = examples_of(parts, hand_strategy_loss if softmax else hand_advantage_loss)
    net, index = network(), torch.tensor([0, 7, 7, 49])
    net.scale.fill_(1.0 if softmax else 2.0)
    wanted = torch.autograd.grad(plain_loss(parts, net, index, softmax=softmax), list(net.parameters()))
    found = torch.autograd.grad(examples.loss(net, drawn(examples, index)), list(net.parameters()))
    # the loss is divided by the mean weight of a hand, which changes no direction
    unit = sum(float((f * w).sum()) for f, w in zip(found, wanted, strict=True)) / sum(
        float(w.square().sum()) for w in wanted
    )
    mean = [float((linear_weights(h.iteration, NEWEST) * h.reach.sum(1)).mean()) for h in (p.memory[:] for p in parts)]
    assert unit == pytest.approx(1 / sum(mean), rel=1e-4)
    for f, w in zip(found, wanted, strict=True):
        torch.testing.assert_close(f, unit * w, rtol=1e-3, atol=1e-6)


def test_rounds_are_drawn_from_alike_and_short_memories_repeat_evenly() -> None:
    parts = [part_of(0, 0, 20), part_of(0, 1, 50)]
    examples, net = examples_of(parts), network()
    assert len(examples) == 50
    every = sum(examples.loss(net, drawn(examples, torch.tensor([i]))) for i in range(50))
    separate = [examples_of([part]) for part in parts]
    mean = [float((linear_weights(h.iteration, NEWEST) * h.reach.sum(1)).mean()) for h in (p.memory[:] for p in parts)]
    # each of the twenty is there two or three times
    repeated = torch.arange(50) * 20 // 50
    apart = torch.zeros(())
    for one, rows, mass in zip(separate, (repeated, torch.arange(50)), mean, strict=True):
        apart = apart + one.loss(net, drawn(one, rows)) * mass
    torch.testing.assert_close(every, apart / sum(mean), rtol=1e-4, atol=1e-5)
    assert set(torch.bincount(repeated).tolist()) == {2, 3}


@pytest.mark.parametrize("reach", [0.0, 1e-30])
def test_nothing_is_divided_by_a_tiny_reach(reach: float) -> None:
    outputs = torch.full((1, 1, 3), 5.0, requires_grad=True)
    values = torch.full((1, 1, 3), reach * 2.0)
    loss = hand_advantage_loss(outputs, values, torch.full((1, 1), reach), torch.ones(1, 3, dtype=torch.bool))
    loss.sum().backward()
    assert outputs.grad is not None
    assert float(loss.detach()) <= reach * 3 * 3**2 + 1e-30
    assert bool((outputs.grad.abs() <= reach * 2 * 3 + 1e-30).all())
    assert bool(torch.isfinite(outputs.grad).all())


def test_the_scale_is_the_weighted_root_mean_square_of_targets() -> None:
    part = part_of(1, 1, 300)
    hands = part.memory[:]
    weight, squares, mass = linear_weights(hands.iteration, NEWEST), 0.0, 0.0
    for n in range(len(part.nodes)):
        edges = (part.place // LEGAL.shape[1] == n).nonzero()[:, 0]
        target = hands.values[:, edges] / hands.reach[:, n : n + 1]
        squares += float((weight * hands.reach[:, n] * target.square().sum(1)).sum())
        mass += float((weight * hands.reach[:, n]).sum() * len(edges))
    assert examples_of([part]).scale() == pytest.approx((squares / mass) ** 0.5, rel=1e-4)
    assert examples_of([part], scaled=False).scale() == 1


def test_empty_memories_are_left_out() -> None:
    empty = HandPart(HandMemory(2, 5, 2, 10), torch.tensor([0]), LEGAL[:1], torch.tensor([0]))
    assert len(examples_of([empty])) == 0
    part = part_of(0, 1, 50)
    examples, same = examples_of([empty, part]), examples_of([part])
    index = drawn(same, torch.tensor([1]))
    torch.testing.assert_close(examples.loss(network(), index), same.loss(network(), index))


def signed(part: HandPart) -> HandPart:
    """The part with targets of both signs, the negative ones up to four times as large."""
    values = part.memory.columns["values"]
    negative = torch.arange(values.shape[1]) % 2 == 0
    values[:, negative] *= -4
    return part


def test_compressed_targets_are_what_regret_matching_reads() -> None:
    part = signed(part_of(0, 1, 40))
    values, reach = part.memory.filled("values"), part.memory.filled("reach")
    per_edge = reach[:, part.place // LEGAL.shape[1]]
    positive, weight = values > 0, linear_weights(part.memory.filled("iteration"), NEWEST)[:, None]
    squares = (values.clamp(min=0).square() / per_edge * weight).sum()
    knee = 0.5 * (squares / (per_edge * positive * weight).sum()).sqrt()
    target = values / per_edge
    wanted = torch.where(positive, target, -knee * torch.log1p(-target.clamp(max=0) / knee)) * per_edge
    memory = HandMemory(2, values.shape[1], reach.shape[1], 40)
    memory.append(HandSamples(part.memory.filled("cards"), wanted, reach, part.memory.filled("iteration")))
    plain = examples_of([HandPart(memory, part.nodes, part.legal, part.place)])
    compressed = HandExamples([part], hand_advantage_loss, linear_weights, NEWEST, scaled=True, compress=0.5)
    assert compressed.scale() == pytest.approx(plain.scale(), rel=1e-5)
    assert compressed.scale() < 0.9 * examples_of([part]).scale()
    net, index = network(), drawn(plain, torch.arange(40))
    assert float(compressed.loss(net, index)) == pytest.approx(float(plain.loss(net, index)), rel=1e-4)
    part.memory.columns["values"].abs_().neg_()  # targets that are all negative are left as they are
    compressed = HandExamples([part], hand_advantage_loss, linear_weights, NEWEST, scaled=True, compress=1.0)
    assert float(compressed.loss(net, index)) == pytest.approx(float(examples_of([part]).loss(net, index)), rel=1e-6)


def test_muon_moves_hidden_matrices_and_adam_the_rest() -> None:
    rate, net = 0.01, network()
    before = {name: p.detach().clone() for name, p in net.named_parameters()}
    config = FitConfig(steps=1, batch_size=64, learning_rate=rate, optimizer="muon")
    fit(net, examples_of([part_of(0, 1, 50)]), config, 1, Workers(1))
    hidden = {name for name, p in net.named_parameters() if any(p is matrix for matrix in net.hidden_matrices())}
    assert "hidden.0.weight" in hidden
    assert not any(name.startswith("head") or name.endswith("bias") for name in hidden)
    for name, parameter in net.named_parameters():
        step = parameter.detach() - before[name]
        if name in hidden:  # an orthogonalised step has the same root mean square whatever the gradient was
            assert 0.1 * rate < float(step.square().mean().sqrt()) < 0.3 * rate
        else:  # Adam's first step moves every weight that has a gradient by the rate
            moved = step[step != 0].abs()
            torch.testing.assert_close(moved, torch.full_like(moved, rate), rtol=1e-2, atol=0)

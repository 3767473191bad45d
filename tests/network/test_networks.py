"""Networks: section 5.1 and Appendix C re-implemented with the same weights, parameter counts, the split."""

from typing import Literal

import pytest
import torch

from deepcfr.config import NetworkConfig
from deepcfr.core.rng import generator, key
from deepcfr.core.types import NO_CARD, Encoding, Infosets
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.network.layers import Linear, PairedProducts
from deepcfr.network.networks import MLP, PaperNetwork, SplitNetwork, build_network, count_parameters, picked_by_product
from deepcfr.solve.self_play import Learner, copies
from fit_data import infosets_of

GAMES = {name: load_game(name) for name in ("kuhn", "leduc", "fhp", "hulh")}
FHP = GAMES["fhp"]
PRINTED = NetworkConfig(card_width=1, card_embedding=True)  # Appendix C as printed, with a fourth output
CONFIGS = [
    NetworkConfig(),
    PRINTED,
    NetworkConfig(kind="mlp", width=16, layers=3),
    NetworkConfig(width=6, node_embedding=True),
    NetworkConfig(kind="mlp", width=6, layers=1, node_embedding=True),
    NetworkConfig(kind="two-tower", width=24, layers=2),
    NetworkConfig(kind="two-tower", width=10, layers=0, node_embedding=True),
]


def build(game: PokerGame, config: NetworkConfig, seed: int = 0) -> SplitNetwork:
    return build_network(game.encoding, config, generator(seed))


# Parameters


@pytest.mark.parametrize(
    ("config", "count"),
    [
        (NetworkConfig(), 98_948),  # as the paper states
        (PRINTED, 47_939 + 65),  # Appendix C as printed, but for the fourth output
        (NetworkConfig(width=256), 23 * 256**2 + 74 * 256 + 4),
        (NetworkConfig("two-tower", width=256, layers=2, strength=True), 222_592),
    ],
)
def test_networks_have_the_stated_parameters_which_follow_from_the_generator_alone(
    config: NetworkConfig, count: int
) -> None:
    torch.manual_seed(0)
    one = build(FHP, config, seed=4)
    torch.manual_seed(1)
    again, other = build(FHP, config, seed=4).state_dict(), build(FHP, config, seed=5).state_dict()
    assert count_parameters(one) == count
    assert one.state_dict().keys() == again.keys()
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, again[name])
        assert name == "scale" or not torch.equal(weight, other[name])
    starts = {tuple(p.detach().flatten()[:7].tolist()) for p in one.parameters() if p.numel() >= 7}
    assert len(starts) == sum(p.numel() >= 7 for p in one.parameters())  # no two layers start alike


def test_a_two_tower_output_is_the_product_of_features_and_an_actions_vector() -> None:
    network = build(FHP, NetworkConfig("two-tower", width=5, layers=1))
    infosets = infosets_of(FHP, 20)
    with torch.no_grad():
        hands, vectors = network.encode_cards(infosets.cards), network.encode_nodes()
        outputs = network(infosets)
    for row in (0, 7, 19):
        mine = vectors[infosets.node[row]]
        for action in range(FHP.encoding.num_actions):
            expected = sum(float(hands[row, k]) * float(mine[5 * action + k]) for k in range(5))
            assert float(outputs[row, action]) == pytest.approx(expected, rel=1e-4, abs=1e-6)
    # features are normalised, so the outputs of a fresh network do not grow with its width
    torch.testing.assert_close(hands.square().sum(1), torch.ones(20), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("kind", ["paper", "mlp"])
def test_an_embedding_of_nodes_is_added_to_what_their_bets_give(kind: Literal["paper", "mlp"]) -> None:
    plain, network = (build(FHP, NetworkConfig(kind, width=8, node_embedding=own)) for own in (False, True))
    infosets = infosets_of(FHP, 100)
    with torch.no_grad():
        assert torch.equal(network(infosets), plain(infosets))  # it starts from nothing, and other weights are the same
        network.get_parameter("node_embedding")[3, 5] = 2.0
        changed = (network.encode_nodes() - plain.encode_nodes()).nonzero().tolist()
        assert changed == [[3, 5]]
        other = (network(infosets) - plain(infosets)).abs().sum(1) > 0
    assert other.equal(infosets.node == 3)
    assert count_parameters(network) == count_parameters(plain) + 78 * 8


def test_layers_start_as_torchs_do() -> None:
    layer = Linear(400, 300, generator(1))
    reference = torch.nn.Linear(400, 300)
    bound = 1 / 20
    for mine, theirs in ((layer.weight, reference.weight), (layer.bias, reference.bias)):
        assert mine.shape == theirs.shape
        assert 0.98 * bound < mine.abs().max().item() <= bound
        assert mine.std().item() == pytest.approx(bound / 3**0.5, rel=0.1)
        assert abs(mine.mean().item()) < 4 * bound / mine.numel() ** 0.5


# The paper's description


def normalised(z: torch.Tensor) -> torch.Tensor:
    centred = z - z.mean(1, keepdim=True)
    return centred / (centred.square().mean(1, keepdim=True) + 1e-5).sqrt()


def card_sums(network: PaperNetwork, game: PokerGame, cards: torch.Tensor, single_cards: bool) -> torch.Tensor:
    """For every group the sum of its cards' rank, suit (and card) embeddings, groups side by side."""
    ranks, suits = game.rules.num_ranks, game.rules.num_suits
    rows = []
    for row in cards.tolist():
        sums, slot = [], 0
        for group, size in enumerate(game.card_groups):
            total = torch.zeros(network.width, dtype=torch.float64)
            for card in row[slot : slot + size]:
                if card == NO_CARD:
                    continue
                rank, suit = divmod(card, suits)
                total = total + network.embedding[group, rank] + network.embedding[group, ranks + suit]
                if single_cards:
                    total = total + network.embedding[group, ranks + suits + card]
            sums.append(total)
            slot += size
        rows.append(torch.cat(sums))
    return torch.stack(rows)


def bet_features(game: PokerGame, nodes: torch.Tensor) -> torch.Tensor:
    """For every betting position its size in big blinds (0 where there is none), then whether it has occurred."""
    bets = torch.tensor(game.tree.bets[nodes.numpy()], dtype=torch.float64)
    return torch.cat([bets.clamp(min=0) / game.rules.unit_chips, (bets >= 0).double()], dim=1)


def as_described(network: PaperNetwork, game: PokerGame, infosets: Infosets, config: NetworkConfig) -> torch.Tensor:
    """Section 5.1 with the skips of Appendix C: none in the card branch, one in the bet branch, two in the trunk."""

    def layer(name: str, x: torch.Tensor) -> torch.Tensor:
        module = getattr(network, name)
        return x @ module.weight.T + module.bias

    x = card_sums(network, game, infosets.cards, config.card_embedding)
    for name in ("card1", "card2", "card3"):
        x = layer(name, x).clamp(min=0)
    y = layer("bet1", bet_features(game, infosets.node)).clamp(min=0)
    y = (layer("bet2", y) + y).clamp(min=0)
    z = layer("comb1", torch.cat([x, y], dim=1)).clamp(min=0)
    z = (layer("comb2", z) + z).clamp(min=0)
    z = (layer("comb3", z) + z).clamp(min=0)
    return layer("head", normalised(z))[:, : game.encoding.num_actions]


@pytest.mark.parametrize(
    ("name", "config"), [("leduc", NetworkConfig(width=7, card_width=2)), ("fhp", PRINTED), ("hulh", NetworkConfig())]
)
def test_the_paper_network_is_the_papers_description_in_value_and_gradient(name: str, config: NetworkConfig) -> None:
    game = GAMES[name]
    network = build(game, config).double()
    assert isinstance(network, PaperNetwork)
    infosets = infosets_of(game, 60)
    expected = as_described(network, game, infosets, config)
    assert expected.std() > 0.01
    torch.testing.assert_close(network(infosets), expected)
    direction = torch.randn(expected.shape, generator=generator(3), dtype=torch.float64)
    mine = torch.autograd.grad((network(infosets) * direction).sum(), list(network.parameters()))
    theirs = torch.autograd.grad((expected * direction).sum(), list(network.parameters()))
    for (parameter, _), gradient, expected_gradient in zip(network.named_parameters(), mine, theirs, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, msg=lambda text, at=parameter: f"{at}: {text}")


@pytest.mark.parametrize("layers", [1, 4])
def test_the_plain_network_counts_cards_and_stacks_layers(layers: int) -> None:
    game, config = GAMES["leduc"], NetworkConfig(kind="mlp", width=9, layers=layers)
    network = build(game, config).double()
    assert isinstance(network, MLP)
    assert len(network.hidden) == layers - 1
    infosets = infosets_of(game, 60)
    # of ranks and suits in the hole and on the board
    counts = torch.zeros(len(infosets), 2, 3 + 2, dtype=torch.float64)
    for row, cards in enumerate(infosets.cards.tolist()):
        for group, card in enumerate(cards):
            if card != NO_CARD:
                counts[row, group, card // 2] += 1
                counts[row, group, 3 + card % 2] += 1
    z = torch.cat([counts.flatten(1), game.encoding.node_features[infosets.node].double()], dim=1)
    for layer in (network.first, *network.hidden):
        z = (z @ layer.weight.T + layer.bias).clamp(min=0)
    expected = normalised(z) @ network.head.weight.T + network.head.bias
    torch.testing.assert_close(network(infosets), expected)


# The split


@pytest.mark.parametrize("name", ["fhp", "hulh"])  # all nodes are encoded, and those of the batch
@pytest.mark.parametrize("config", CONFIGS)
def test_a_batch_smaller_than_the_tree_has_the_outputs_and_gradients_of_a_large_one(
    name: str, config: NetworkConfig
) -> None:
    game = GAMES[name]
    network, infosets = build(game, config), infosets_of(game, 5)
    few = Infosets(infosets.node[:5], infosets.cards[:5])
    times = len(game.encoding.legal)
    assert len(few.node) < times
    many = Infosets(few.node.repeat(times), few.cards.repeat(times, 1))  # every node is encoded once for these
    torch.testing.assert_close(network(many), network(few).repeat(times, 1), rtol=1e-5, atol=1e-5)
    parameters = list(network.parameters())
    gradients = [
        torch.autograd.grad(network(batch).square().sum() / len(batch.node), parameters, allow_unused=True)
        for batch in (few, many)
    ]
    for one, other in zip(*gradients, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert (one - other).norm() <= 1e-3 * other.norm()


@pytest.mark.parametrize("name", ["kuhn", "fhp"])
@pytest.mark.parametrize("config", CONFIGS)
def test_a_grid_of_hands_and_nodes_has_the_outputs_of_its_infosets(name: str, config: NetworkConfig) -> None:
    game = GAMES[name]
    network = build(game, config)
    cards = infosets_of(game, 31).cards
    node = torch.arange(0, len(game.encoding.legal), 1 + len(game.encoding.legal) // 100)
    with torch.no_grad():
        network.scale.fill_(7.0)  # outputs are in units of it, and it must not enter
        found = torch.full((len(node), len(cards), game.encoding.num_actions), torch.nan)
        for some, outputs in network.on_grid(cards, network.encode_nodes()[node]):
            found[some] = outputs
        infosets = Infosets(node.repeat_interleave(len(cards)), cards.repeat(len(node), 1))
        expected = network(infosets)
        apart = network.joint(network.encode_cards(infosets.cards), network.encode_nodes()[infosets.node])
        assert network(infosets[slice(0, 0)]).shape == (0, game.encoding.num_actions)
        for row in (0, len(infosets) // 2):
            torch.testing.assert_close(network(infosets[slice(row, row + 1)])[0], expected[row], atol=1e-5, rtol=1e-5)
        for other in (
            Infosets(infosets.node.roll(31), infosets.cards),
            Infosets(infosets.node, infosets.cards.roll(1, 0)),
        ):
            assert not torch.allclose(network(other), expected)  # outputs depend on the node and on the cards
    torch.testing.assert_close(found.flatten(0, 1), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(apart, expected, rtol=1e-5, atol=1e-5)


# Initial weights


def test_rows_picked_by_a_product_are_those_of_a_look_up_in_value_and_gradient() -> None:
    draw = generator(key(0, "rows"))
    table, index = torch.randn(7, 3, generator=draw).requires_grad_(), torch.randint(7, (20, 2), generator=draw)
    factors = torch.randn(20, 2, 3, generator=draw)
    (gradient,) = torch.autograd.grad((picked_by_product(table, index) * factors).sum(), table)
    assert torch.equal(picked_by_product(table, index), table[index])
    torch.testing.assert_close(gradient, torch.zeros(7, 3).index_add(0, index.flatten(), factors.flatten(0, 1)))


def test_a_game_without_cards_has_a_plain_network() -> None:
    features = torch.eye(4)
    encoding = Encoding(features, torch.ones(4, 2, dtype=torch.bool), card_groups=(), num_ranks=0, num_suits=0)
    network = build_network(encoding, NetworkConfig(kind="mlp", width=8, layers=2), generator(0))
    infosets = Infosets(torch.arange(4), torch.empty(4, 0, dtype=torch.uint8))
    with torch.no_grad():
        outputs = network(infosets)
        z = features @ network.first.weight.T + network.first.bias
        z = network.hidden[0](z.clamp(min=0)).clamp(min=0)
        torch.testing.assert_close(outputs, network.head(normalised(z)))
    assert len({tuple(row) for row in outputs.tolist()}) == 4


def test_networks_of_one_game_share_its_features() -> None:
    networks = [build_network(FHP.encoding, NetworkConfig(), generator(0)) for _ in range(2)]
    networks += copies([Learner(network) for network in networks])
    assert all(network.node_features is FHP.encoding.node_features for network in networks)
    assert networks[2].head.weight is not networks[0].head.weight


@pytest.mark.parametrize("most", [1, 1 << 18])
def test_node_parts_are_those_of_the_network_however_many_nodes_there_are(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepcfr.network.networks._MOST_NODES", most)
    network, node = build(FHP, NetworkConfig()), torch.tensor([7, 2, 2])
    encoded = []
    monkeypatch.setattr(network, "encode_features", lambda rows: encoded.append(len(rows)) or rows)
    with torch.no_grad():
        parts = network.node_parts()
        assert torch.equal(parts[node], network.node_features[node])
    assert encoded == ([3] if most == 1 else [len(network.node_features)])


@pytest.mark.parametrize("config", CONFIGS)
def test_outputs_stay_in_another_unit(config: NetworkConfig) -> None:
    network, infosets = build(FHP, config), infosets_of(FHP)
    network.scale.fill_(3.0)
    before = network(infosets).detach() * network.scale
    network.keep_outputs_in(0.5)
    assert float(network.scale) == 0.5
    torch.testing.assert_close(network(infosets).detach() * 0.5, before)
    assert before.abs().max() > 0.1


def test_products_of_hands_with_some_nodes_are_torchs_in_value_and_gradient() -> None:
    draw = torch.Generator().manual_seed(0)
    hands = torch.randn(9, 12, generator=draw, requires_grad=True)
    nodes = torch.randn(7, 3, 12, generator=draw, requires_grad=True)
    place = torch.randint(7, (9, 4), generator=draw)  # nodes occur several times, and some may not
    weight = torch.randn(9, 4, 3, generator=draw)
    own = PairedProducts.apply(hands, nodes, place)
    copied = torch.einsum("id,ikad->ika", hands, nodes[place])
    torch.testing.assert_close(own, copied)
    found = torch.autograd.grad((own * weight).sum(), (hands, nodes))
    expected = torch.autograd.grad((copied * weight).sum(), (hands, nodes))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)

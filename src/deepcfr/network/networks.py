"""The networks of Deep CFR, each split so that work can be shared between infosets.

A network is a card part, computed once for each (player, cards); a node part, computed once for each public node; and a
joint part for each infoset. In the paper's network that starts from the *sum* of the two, because its first layer is linear
in both; in `TwoTower` it is their inner product. Traversals, exact evaluation and mini-batches all use the same split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import nn
from torch.nn import functional

from deepcfr.config import NetworkConfig
from deepcfr.core.errors import ConfigError
from deepcfr.core.types import Encoding, Infosets
from deepcfr.game.strength import StrengthTables, has_spread, strength_tables
from deepcfr.network.layers import CardCounts, Linear, PairedProducts, StrengthLayer, with_strength

_EPSILON = 1e-5  # added to the variance of the last features
# hands times nodes computed together: on a CPU what stays in the cache of a core, on CUDA what keeps the device busy
_GRID = {"cpu": 1_536, "cuda": 1 << 18}
_TOWER_GRID = {"cpu": 1 << 15, "cuda": 1 << 20}  # the same where outputs are one product
_BET_FEATURES = 64  # of the bet tower
_MOST_NODES = 1 << 18  # whose parts are kept; more are encoded when they are asked for
_FEW_NODES = 512  # in a tree of so many all node parts are computed for every batch
_OUTPUTS = 4  # of the paper network, which give it the stated 98,948 parameters; surplus ones are ignored
Strengths = StrengthTables | None
_LEAST_HIDDEN = 16  # features on both sides of a hidden matrix


def _slices(nodes: torch.Tensor, hands: int, grid: Mapping[str, int]) -> Iterator[slice]:
    """Slices of `nodes` [n, D] that are each computed at once for all hands; `grid` is the most by kind of device."""
    step = max(1, grid[nodes.device.type] // max(1, hands))
    return (slice(start, start + step) for start in range(0, len(nodes), step))


def _rows(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """The rows of `table` [n, N] at `index`, int [...]; in fits on CUDA by a product: a look-up's gradient sorts there."""
    if index.is_cuda and len(table) <= _FEW_NODES and torch.is_grad_enabled():
        return picked_by_product(table, index)
    return functional.embedding(index, table)


def picked_by_product(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """The rows of `table` [n, N] at `index`, int [...], as the product with indicators of rows, [..., N]."""
    return (index[..., None] == torch.arange(len(table), device=table.device)).to(table.dtype) @ table


class NodeParts:
    """A network's node parts, by public infoset: of all at once, or of those asked for in a game with very many.

    The network must not change while they are used.
    """

    def __init__(self, network: SplitNetwork) -> None:
        self._network = network
        self._all = network.encode_nodes() if len(network.node_features) <= _MOST_NODES else None  # [K, D]

    def __getitem__(self, node: torch.Tensor) -> torch.Tensor:
        return self._network.encode_nodes(node) if self._all is None else self._all[node]


class SplitNetwork(nn.Module):
    """Outputs for every action at an infoset, as `joint(encode_cards(cards), encode_nodes()[node])`."""

    infosets_at_once = 4_480  # in one gradient: larger arrays leave the processor's cache
    node_features: torch.Tensor
    scale: torch.Tensor
    head: Linear

    def __init__(self, encoding: Encoding, config: NetworkConfig, node_width: int = 0) -> None:
        """`node_width` is the number of features that a node's embedding is added to, by default the config's width."""
        super().__init__()
        self.num_actions, self.width = encoding.num_actions, config.width
        self.register_buffer("node_features", encoding.node_features, persistent=False)
        self.register_buffer("scale", torch.ones(()))  # the unit of the targets that the network was fitted to
        nodes = len(encoding.node_features)
        own = torch.zeros(nodes, node_width or config.width)
        self.node_embedding = nn.Parameter(own) if config.node_embedding else None

    def encode_cards(self, cards: torch.Tensor) -> torch.Tensor:
        """The card part, uint8 [I, C] to float32 [I, D]."""
        raise NotImplementedError

    def encode_features(self, features: torch.Tensor) -> torch.Tensor:
        """The node part as far as public infosets are known by their features, float32 [I, F] to [I, D]."""
        raise NotImplementedError

    def encode_nodes(self, some: torch.Tensor | None = None) -> torch.Tensor:
        """The node part of the public infosets `some`, int [I], or of every one, [K, D]; float32."""

        def those(rows: torch.Tensor) -> torch.Tensor:
            return rows if some is None else functional.embedding(some, rows)

        nodes = self.encode_features(those(self.node_features))
        return nodes if self.node_embedding is None else nodes + those(self.node_embedding)

    def node_parts(self) -> NodeParts:
        """The node parts by public infoset, to look up."""
        return NodeParts(self)

    def joint(self, hands: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        """The joint part in units of `scale`: card parts [..., D] and node parts [..., N], which broadcast, to [..., A]."""
        raise NotImplementedError

    def on_grid(self, cards: torch.Tensor, nodes: torch.Tensor) -> Iterator[tuple[slice, torch.Tensor]]:
        """Outputs of all hands `cards` [U, C] at all encoded `nodes` [n, D], without gradients and a few nodes at a time.

        Gives slices of the nodes with their outputs in units of `scale`, float32 [m, U, A].
        """
        hands = self.encode_cards(cards)
        for some in _slices(nodes, len(hands), _GRID):
            yield some, self.joint(hands, nodes[some, None])

    def forward(self, infosets: Infosets) -> torch.Tensor:
        """Outputs in units of `scale`, float32 [I, A]; [I, k, A] for k nodes of each hand."""
        node, hands = infosets.node, self.encode_cards(infosets.cards)
        if node.device.type != "cpu" and len(self.node_features) > _MOST_NODES:
            return self.joint(hands if node.dim() == 1 else hands[:, None], self.encode_nodes(node))
        if len(self.node_features) <= _FEW_NODES or node.device.type != "cpu":
            return self.paired(hands, self.encode_nodes(), node.long())
        distinct, place = torch.unique(node, return_inverse=True)  # in a large tree most of a batch is at few nodes
        return self.paired(hands, self.encode_nodes(distinct), place)

    def paired(self, hands: torch.Tensor, nodes: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        """As `joint` of hands [I, D] with the node parts `nodes`, [n, N], at `place`, int [I] or [I, k], each."""
        return self.joint(hands if place.dim() == 1 else hands[:, None], _rows(nodes, place))

    def hidden_matrices(self) -> list[nn.Parameter]:
        """The matrices between layers of features, whose gradients Muon orthogonalises: not inputs, outputs and biases."""
        layers = [module for module in self.modules() if isinstance(module, Linear)]
        return [layer.weight for layer in layers if min(layer.weight.shape) >= _LEAST_HIDDEN]

    @property
    def last_layer(self) -> Linear:
        """The layer that outputs are linear in, weights and biases alike."""
        return self.head

    @torch.no_grad()
    def keep_outputs_in(self, unit: float) -> None:
        """Take `unit` for `scale`, and divide the last layer so that outputs times `scale` stay as they are."""
        for parameter in self.last_layer.parameters():
            parameter.mul_(self.scale / unit)
        self.scale.fill_(unit)

    def is_zero(self) -> bool:
        """Whether all parameters are 0, as `zero_` sets them."""
        return not any(bool(parameter.any()) for parameter in self.parameters())

    def zero_(self) -> SplitNetwork:
        """Make the network return 0 for every input, as Algorithm 1 starts; returns itself."""
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.zero_()
        return self


class PaperNetwork(SplitNetwork):
    """The network of Deep CFR, section 5.1 and Appendix C: card branch, bet branch, three joint layers.

    Parameters on FHP at d = 64, with the 4 outputs here and in brackets with the 3 that FHP reads:

    * `card_width` 3, no single-card embeddings: 98,948 (98,883). Section 5.1 states 98,948.
    * `card_width` 1 alone: 41,348 (41,283).
    * `card_width` 1 and `card_embedding`: 48,004 (47,939), the layers of Appendix C's listing.
    """

    def __init__(
        self, encoding: Encoding, config: NetworkConfig, generator: torch.Generator, tables: Strengths
    ) -> None:
        super().__init__(encoding, config)
        d, hidden, groups = config.width, config.card_width * config.width, len(encoding.card_groups)
        self.counts = CardCounts(encoding, config.card_embedding)
        self.embedding = nn.Parameter(torch.randn(groups, self.counts.width, d, generator=generator))
        self.card1 = Linear(groups * d, hidden, generator)
        self.card2 = Linear(hidden, hidden, generator)
        self.card3 = Linear(hidden, d, generator)
        self.bet1 = Linear(encoding.node_features.shape[1], d, generator)
        self.bet2 = Linear(d, d, generator)
        self.comb1 = Linear(2 * d, d, generator)
        self.comb2 = Linear(d, d, generator)
        self.comb3 = Linear(d, d, generator)
        self.head = Linear(d, max(_OUTPUTS, encoding.num_actions), generator)
        self.strength = StrengthLayer(tables, sum(encoding.card_groups[1:]), hidden, generator) if tables else None

    def encode_cards(self, cards: torch.Tensor) -> torch.Tensor:
        groups, _, d = self.embedding.shape
        by_group = self.card1.weight.view(-1, groups, d)
        first = torch.einsum("gcd,hgd->gch", self.embedding, by_group).flatten(0, 1)  # embedding and card1 in one
        x = torch.addmm(self.card1.bias, self.counts(cards), first)
        x = with_strength(x, self.strength, cards).relu_()
        x = self.card2(x).relu_()
        x = self.card3(x).relu_()
        return functional.linear(x, self.comb1.weight[:, :d])

    def encode_features(self, features: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bet1(features))
        y = torch.relu(self.bet2(y) + y)
        return functional.linear(y, self.comb1.weight[:, self.width :], self.comb1.bias)

    def joint(self, hands: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        z = (hands + nodes).relu_()
        z = self.comb2(z).add_(z).relu_()
        z = self.comb3(z).add_(z).relu_()
        z = functional.layer_norm(z, (self.width,), eps=_EPSILON)
        return functional.linear(z, self.head.weight[: self.num_actions], self.head.bias[: self.num_actions])

    def on_grid(self, cards: torch.Tensor, nodes: torch.Tensor) -> Iterator[tuple[slice, torch.Tensor]]:
        """As `joint`, in fewer operations and with features first, so that sums over them run along whole rows of hands.

        A residual is a 1 on the diagonal of its layer's matrix. The normalised features meet the head as (W z - mean of z
        times the sum of W's row) / deviation of z; with the rows of W centred the mean drops out.
        """
        hands, columns = self.encode_cards(cards).t().contiguous(), nodes.t()[:, :, None]
        one = torch.eye(self.width, device=nodes.device)
        layers = [(layer.bias[:, None], layer.weight + one) for layer in (self.comb2, self.comb3)]
        head, bias = self.head.weight[: self.num_actions], self.head.bias[: self.num_actions, None]
        head = torch.cat([head - head.mean(1, keepdim=True), torch.full_like(head[:1], 1 / self.width)])
        for some in _slices(nodes, len(cards), _GRID):
            z = (columns[:, some] + hands[:, None]).flatten(1).relu_()
            for offset, weight in layers:
                z = torch.addmm(offset, weight, z).relu_()
            sums = torch.mm(head, z)
            variance = (z.square_().mean(0) - sums[-1].square()).clamp_(min=0)
            outputs = sums[:-1] * torch.rsqrt(variance + _EPSILON) + bias
            yield some, outputs.view(len(outputs), -1, len(cards)).permute(1, 2, 0)


class MLP(SplitNetwork):
    """A plain network for small games: hidden layers with ReLU, normalised last features, a linear head."""

    def __init__(
        self, encoding: Encoding, config: NetworkConfig, generator: torch.Generator, tables: Strengths
    ) -> None:
        super().__init__(encoding, config)
        d = config.width
        self.counts = CardCounts(encoding, single_cards=False) if encoding.card_groups else None
        inputs = len(encoding.card_groups) * self.counts.width if self.counts else 0
        self.card_inputs = inputs
        self.first = Linear(inputs + encoding.node_features.shape[1], d, generator)
        self.hidden = nn.ModuleList(Linear(d, d, generator) for _ in range(config.layers - 1))
        self.head = Linear(d, encoding.num_actions, generator)
        self.strength = StrengthLayer(tables, sum(encoding.card_groups[1:]), d, generator) if tables else None

    def encode_cards(self, cards: torch.Tensor) -> torch.Tensor:
        if self.counts is None:
            return torch.zeros(len(cards), self.width, device=cards.device)
        x = functional.linear(self.counts(cards), self.first.weight[:, : self.card_inputs])
        return with_strength(x, self.strength, cards)

    def encode_features(self, features: torch.Tensor) -> torch.Tensor:
        return functional.linear(features, self.first.weight[:, self.card_inputs :], self.first.bias)

    def joint(self, hands: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        z = (hands + nodes).relu_()
        for layer in self.hidden:
            z = layer(z).relu_()
        return functional.linear(
            functional.layer_norm(z, (self.width,), eps=_EPSILON), self.head.weight, self.head.bias
        )


class TwoTower(SplitNetwork):
    """A tower for the cards and one for the bets, which meet in an inner product: not the paper's network.

    The bet tower gives a vector of `width` weights for every action at a public node, and an output is its product with
    the features of the cards. So a hand passes once through wide layers for all its decisions, where the paper's joint
    layers are paid for at every infoset. Parameters on FHP at width 256, with two layers and hand strength: 222,592.
    """

    def __init__(
        self, encoding: Encoding, config: NetworkConfig, generator: torch.Generator, tables: Strengths
    ) -> None:
        super().__init__(encoding, config, _BET_FEATURES)
        self.infosets_at_once = max(17_920, 32 * len(encoding.legal))  # every piece encodes all nodes of the tree
        d = config.width
        self.counts = CardCounts(encoding, config.card_embedding)
        self.first = Linear(len(encoding.card_groups) * self.counts.width, d, generator)
        self.hidden = nn.ModuleList(Linear(d, d, generator) for _ in range(config.layers))
        self.strength = StrengthLayer(tables, sum(encoding.card_groups[1:]), d, generator) if tables else None
        self.bet1 = Linear(encoding.node_features.shape[1], _BET_FEATURES, generator)
        self.bet2 = Linear(_BET_FEATURES, _BET_FEATURES, generator)
        self.vectors = Linear(_BET_FEATURES, encoding.num_actions * d, generator)

    @property
    def last_layer(self) -> Linear:
        return self.vectors

    def encode_cards(self, cards: torch.Tensor) -> torch.Tensor:
        x = with_strength(self.first(self.counts(cards)), self.strength, cards).relu_()
        for layer in self.hidden:
            x = layer(x).add_(x).relu_()
        return functional.layer_norm(x, (self.width,), eps=_EPSILON) * self.width**-0.5

    def encode_features(self, features: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bet1(features))
        return torch.relu(self.bet2(y) + y)

    def encode_nodes(self, some: torch.Tensor | None = None) -> torch.Tensor:
        return self.vectors(super().encode_nodes(some))

    def joint(self, hands: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        return torch.einsum("...d,...ad->...a", hands, nodes.reshape(*nodes.shape[:-1], self.num_actions, self.width))

    def paired(self, hands: torch.Tensor, nodes: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        if nodes.device.type != "cpu":
            return super().paired(hands, nodes, place)
        vectors = nodes.view(len(nodes), self.num_actions, self.width)
        several = place if place.dim() == 2 else place[:, None]
        outputs: torch.Tensor = PairedProducts.apply(hands, vectors, several)  # type: ignore[no-untyped-call]
        return outputs if place.dim() == 2 else outputs[:, 0]

    def on_grid(self, cards: torch.Tensor, nodes: torch.Tensor) -> Iterator[tuple[slice, torch.Tensor]]:
        """As `joint`, by one matrix product for all hands and many nodes."""
        hands = self.encode_cards(cards).t()
        for some in _slices(nodes, len(cards), _TOWER_GRID):
            outputs = torch.mm(nodes[some].reshape(-1, self.width), hands)
            yield some, outputs.view(-1, self.num_actions, len(cards)).transpose(1, 2)


def build_network(encoding: Encoding, config: NetworkConfig, generator: torch.Generator) -> SplitNetwork:
    """A network with random initial weights from `generator` (a CPU one), on the encoding's device.

    Raises ConfigError if the paper's network is asked for in a game without cards, if the network has no inputs, and
    as `strength_tables` does.
    """
    if not encoding.card_groups and not encoding.node_features.shape[1]:
        raise ConfigError("Networks cannot distinguish the infosets of this game: it has neither cards nor features.")
    if config.kind == "paper" and not encoding.card_groups:
        raise ConfigError("The paper's network needs a game with cards: choose network.kind = mlp for this one.")
    cpu = Encoding(
        encoding.node_features.cpu(), encoding.legal.cpu(), encoding.card_groups, encoding.num_ranks, encoding.num_suits
    )
    device = encoding.node_features.device
    tables = None
    if config.strength:  # on the device from the start, where all networks share them
        deck = (encoding.card_groups, encoding.num_ranks, encoding.num_suits)
        tables = strength_tables(*deck, str(device), spread=has_spread(encoding.card_groups))
    network = _KINDS[config.kind](cpu, config, generator, tables).to(device)
    network.node_features = encoding.node_features  # one tensor for all networks of a game
    return network


_KINDS: dict[str, type[PaperNetwork | MLP | TwoTower]] = {"paper": PaperNetwork, "mlp": MLP, "two-tower": TwoTower}


def number_of_weights(encoding: Encoding, config: NetworkConfig) -> int:
    """The weights of the network that `build_network` makes, without those that read strengths, and without making it."""
    with torch.device("meta"):
        return count_parameters(_KINDS[config.kind](encoding, config, torch.Generator("cpu"), None))


def count_parameters(network: nn.Module) -> int:
    """The number of trainable parameters of a network."""
    return sum(parameter.numel() for parameter in network.parameters())

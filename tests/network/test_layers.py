"""Inner products of hands with some of many nodes, against torch's own operations."""

import torch

from deepcfr.network.layers import PairedProducts


def test_values_and_gradients_are_those_of_a_copy_for_every_hand() -> None:
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

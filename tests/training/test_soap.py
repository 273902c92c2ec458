"""SOAP is Adam where there is no basis to find, and does not care how its weights are turned."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from skipstone.training.soap import LARGEST, SOAP

DOUBLE = torch.float64


def _follow(
    start: Tensor, loss: Callable[[Tensor], Tensor], steps: int, lr: float = 0.01
) -> list[Tensor]:
    """The weights after each step."""
    weight = nn.Parameter(start.clone())
    optimizer, places = SOAP([weight], lr=lr), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss(weight).backward()
        optimizer.step()
        places.append(weight.detach().clone())
    return places


@pytest.mark.parametrize("shape", [(7,), (1, LARGEST + 1), ()])
def test_without_a_basis_it_is_adam_after_a_first_look(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    start, goal = torch.randn(shape, dtype=DOUBLE), torch.randn(shape, dtype=DOUBLE)

    def loss(weight: Tensor) -> Tensor:
        return (weight - goal).pow(4).sum()

    ours = _follow(start, loss, 21)
    weight = nn.Parameter(start.clone())
    adam = torch.optim.Adam([weight], lr=0.01, betas=(0.95, 0.95))
    assert torch.equal(ours[0], start)
    for place in ours[1:]:
        adam.zero_grad()
        loss(weight).backward()
        adam.step()
        torch.testing.assert_close(place, weight.detach())


def test_turning_the_weights_turns_the_path() -> None:
    """Adam's path depends on the axes it is given; in an eigenbasis there are none to give."""
    torch.manual_seed(1)
    rows, columns = (torch.linalg.qr(torch.randn(4, 4, dtype=DOUBLE)).Q for _ in range(2))
    start, goal = torch.randn(4, 4, dtype=DOUBLE), torch.randn(4, 4, dtype=DOUBLE)
    scale = torch.logspace(0, 2, 16, dtype=DOUBLE).reshape(4, 4)

    def loss(weight: Tensor) -> Tensor:
        return (scale * (weight - goal).square()).sum()

    def turned_loss(weight: Tensor) -> Tensor:
        return loss(rows.T @ weight @ columns)

    straight = _follow(start, loss, 35)
    turned = _follow(rows @ start @ columns.T, turned_loss, 35)
    for here, there in zip(straight, turned, strict=True):
        torch.testing.assert_close(rows @ here @ columns.T, there, atol=1e-4, rtol=0)


def test_it_gets_further_than_adam_where_weights_pull_together() -> None:
    torch.manual_seed(2)
    inputs = torch.randn(256, 20, dtype=DOUBLE) * torch.logspace(0, -2, 20, dtype=DOUBLE)
    inputs = inputs @ torch.linalg.qr(torch.randn(20, 20, dtype=DOUBLE)).Q
    answers = inputs @ torch.randn(20, 10, dtype=DOUBLE)

    def loss(weight: Tensor) -> Tensor:
        return (inputs @ weight - answers).square().mean()

    start = torch.zeros(20, 10, dtype=DOUBLE)
    ours = float(loss(_follow(start, loss, 200, lr=0.02)[-1]))
    weight = nn.Parameter(start.clone())
    adam = torch.optim.Adam([weight], lr=0.02)
    for _ in range(200):
        adam.zero_grad()
        loss(weight).backward()
        adam.step()
    assert ours < 0.1 * float(loss(weight.detach()))


def test_weights_without_a_gradient_stay() -> None:
    used, unused = nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(2, 2))
    optimizer = SOAP([used, unused], lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        used.square().sum().backward()
        optimizer.step()
    assert torch.equal(unused.detach(), torch.ones(2, 2))
    assert not torch.equal(used.detach(), torch.ones(2, 2))


@pytest.mark.parametrize("seed", range(10))
def test_dead_units_do_no_harm(seed: int) -> None:
    """Most rows of a gradient are zero once most units never fire; the others still learn."""
    torch.manual_seed(seed)
    gradient = torch.randn(128, 20) @ torch.randn(20, 128) * torch.randn(128, 1).exp() * 1e-6
    alive = torch.rand(128) < 0.22
    gradient[~alive] = 0
    places = _follow(torch.zeros(128, 128), lambda weight: (weight * gradient).sum(), 15)
    moved = places[-1].abs().amax(1)
    assert places[-1].isfinite().all()
    assert (moved[alive] > 1e-3).all()
    # What is rounded in a basis moves the others, by very little.
    assert (moved[~alive] < 1e-2 * moved[alive].max()).all()

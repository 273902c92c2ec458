"""Convolutional encoders and decoders: an option of every model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from helpers import random_batch
from skipstone import ODERNN, PCODE, RNN, InvalidInput, LatentODE, Sequences
from skipstone.models.fast import library_for
from skipstone.models.images import ConvDecoder, ConvEncoder

MODELS = [PCODE, RNN, ODERNN, LatentODE]


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def build(kind: Any, image: tuple[int, int] = (6, 5), **options: Any) -> Any:
    torch.manual_seed(0)
    config = {"dim": image[0] * image[1], "hidden": 8, "readout": "absolute", "image": image}
    return kind.from_config({**config, **options}).double()


def film(image: tuple[int, int], seed: int = 0, control: int = 0) -> Sequences:
    return random_batch(seed, [7, 9], dim=image[0] * image[1], control=control)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("options", [{}, {"reads": "values"}, {"control": 2}, {"missing": True}])
def test_every_weight_is_trained(kind: Any, options: dict[str, Any]) -> None:
    model = build(kind, **options)
    batch = film((6, 5), control=options.get("control", 0))
    model.loss(batch).total.backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().sum() > 0, name


@pytest.mark.parametrize("kind", MODELS)
def test_a_loss_is_the_error_of_a_rollout(kind: Any) -> None:
    """One observation ahead, teacher forcing and a rollout are the same."""
    model, batch = build(kind), random_batch(2, [6, 6], dim=30, irregular=False)
    path = model.rollout(batch.head(4), batch.times[:, 4])
    close(model.loss(batch).predicted[:, 4:5], path.evaluate(batch.times[:, 4:5]))


@pytest.mark.parametrize("image", [(4, 4), (5, 7), (1, 9), (28, 28)])
def test_any_size_of_image_comes_out_as_it_went_in(image: tuple[int, int]) -> None:
    pixels = image[0] * image[1]
    encoder, decoder = ConvEncoder(image, 2 * pixels + 3, 8), ConvDecoder(8, 8, image)
    rows = torch.randn(2, 3, 2 * pixels + 3)
    encoded = encoder(rows)
    assert encoded.shape == (2, 3, 8)
    assert decoder(encoded).shape == (2, 3, pixels)
    # Each row on its own.
    torch.testing.assert_close(encoder(rows[1, 2]), encoded[1, 2])


def test_what_follows_the_images_is_not_part_of_them() -> None:
    """Controls reach the dense layer as they are."""
    encoder = ConvEncoder((4, 4), 16 + 1, 8)
    rows = torch.randn(1, 17).expand(2, 17).clone()
    rows[1, 16] += 1.0
    before = [encoder.dense(torch.cat([torch.zeros(32), row[16:]])) for row in rows]
    expected = before[1] - before[0]
    found = []
    encoder.dense.register_forward_hook(lambda module, given, output: found.append(output))
    encoder(rows)
    torch.testing.assert_close(found[0][1] - found[0][0], expected)


def test_the_decoder_of_a_line_is_that_of_its_points() -> None:
    """The first layer is affine, so that lines need it only once."""
    model = build(PCODE)
    state = torch.randn(3, 8).double()
    lines = model.lines(state, torch.zeros(3, 30).double())
    lengths = torch.tensor([0.5, 2.0, 3.0]).double()
    along = model.along(lines, lengths[:, None])[:, 0]
    close(along, model.decoder(model.move(state, lengths)))


def test_images_take_the_readable_path() -> None:
    assert library_for(build(PCODE).float(), torch.zeros(1)) is None


def test_a_film_that_moves_can_be_fitted() -> None:
    """A bright column that moves right, wrapping around."""
    column = torch.arange(8)[None, :] + torch.arange(4)[:, None]
    frames = torch.zeros(4, 8, 4, 6).scatter_(
        3, (column % 6)[..., None, None].expand(4, 8, 4, 1), 1
    )
    film = Sequences.from_array(frames.flatten(2).numpy())
    torch.manual_seed(0)
    model = RNN.for_data(film, hidden=16, image=(4, 6), readout="absolute")
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(100):
        optimizer.zero_grad()
        model.loss(film).total.backward()
        optimizer.step()
    assert float(model.loss(film).total.detach()) < 0.02  # The spread is 1.


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ((5, 5), "image must have as many pixels as there are features, 30; got 5 × 5"),
        ((30,), "image must be a height and a width, or empty; got"),
        ((-6, -5), "image, each size, must be"),
    ],
)
def test_a_wrong_size_is_explained(image: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        PCODE.from_config({"dim": 30, "image": image})

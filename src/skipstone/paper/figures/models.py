"""How the models look, by the names that people read."""

from __future__ import annotations

from skipstone.drawing.style import GREY, PALETTE, Style, series_styles

MODEL_STYLES = {
    "PC-ODE": Style(PALETTE[0], "o", "-"),
    "RNN": Style(PALETTE[1], "s", (0, (4, 1.6))),
    "ODE-RNN": Style(PALETTE[2], "^", (0, (5, 1.5, 1, 1.5))),
    "latent ODE": Style(PALETTE[4], "D", (0, (1.2, 1.4))),
    "simulator": Style(GREY, "x", "-"),
}
"""Each model's style, and that of the true simulator."""

SHOWN = ("RNN", "ODE-RNN", "PC-ODE")
"""Models whose predictions are shown side by side, from left to right."""


def model_colour(title: str) -> str:
    """The colour of one model; an unknown one gets a colour that no other has."""
    return series_styles([title], MODEL_STYLES)[title].colour

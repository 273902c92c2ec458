"""A model of your own: it goes on as the last two observations did, and slows down.

How fast it slows down is learned. Prints, after a few seconds:

    coasting in a run folder; learned to slow down by 0.50 per unit of time, truly 0.5
    100 unseen sequences: error 2e-07, 1 update each
"""

import tempfile

import torch
from torch import nn

import skipstone
from skipstone import Losses, Model, Path, Recipe, Sequences


class Coasting(Model):
    """Constant velocity that decays at a learned rate."""

    def __init__(self, config):
        super().__init__(config)
        self.log_rate = nn.Parameter(torch.zeros(()))

    def rollout(self, context, until, controls=None, *, step=None, max_updates=None):
        context, unit = self.prepare_context(context), self.config.time_unit

        def predict(segment, elapsed):
            return self.in_data_units(self.coast(context, elapsed / unit)), 0

        end = self.end_times(context, until)
        return Path(predict, context.ends[:, None], end, calibration=self.calibration)

    def coast(self, context, elapsed):
        """Values so long after a context."""
        before, last = context.values[:, -2], context.values[:, -1]
        gap = self.clock(context.times).diff(dim=1)[:, -1:].to(last.dtype)
        rate = self.log_rate.exp()
        # The mean velocity over the gap, turned into the one at its end.
        velocity = (last - before) * rate / torch.expm1(rate * gap)
        moved = -torch.expm1(-rate * elapsed.to(last.dtype)[..., None]) / rate
        return last[:, None] + moved * velocity[:, None]

    def loss(self, batch, draws=None):
        batch = self.prepare(batch, self.config.num_context + 1)
        clock = self.clock(batch.times)
        now = clock[:, [self.config.num_context - 1]]
        predicted = self.coast(batch.head(self.config.num_context), clock - now)
        return Losses.of(batch, predicted, self.config.num_context)


skipstone.register(Coasting)

if __name__ == "__main__":
    torch.manual_seed(0)
    speed, times = torch.rand(300, 1) + 0.5, 0.1 * torch.arange(30)
    data = Sequences.from_array((speed * (1 - torch.exp(-0.5 * times)))[..., None], spacing=0.1)
    train, test = data[:200], data[200:]
    model = Coasting.for_data(train)
    with tempfile.TemporaryDirectory() as folder:
        recipe = Recipe(steps=150, learning_rate=0.3, optimizer="adam")
        run = skipstone.fit(model, train, folder=folder, recipe=recipe, progress=False)
        model = skipstone.load(folder)
        rate = model.log_rate.exp().item() / model.config.time_unit
        print(f"{run.config['model']['kind']} in a run folder; ", end="")
        print(f"learned to slow down by {rate:.2f} per unit of time, truly 0.5")
    result = skipstone.evaluate(model, test, timing=False)
    print(f"{len(test)} unseen sequences: error {result.sample_mse.value:.0e}, ", end="")
    print(f"{result.updates.value:.0f} update each")

"""`HubModel`: models on the Hugging Face Hub, as JSON and safetensors. Nothing is unpickled."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from skipstone.console import short_number
from skipstone.errors import InvalidInput
from skipstone.files import remove_file
from skipstone.models.base import Model
from skipstone.models.registry import kind_of, title_of
from skipstone.models.storage import CALIBRATION, CONFIG, WEIGHTS, load, read_config
from skipstone.records import write_sealed
from skipstone.training.listing import HEADLINES
from skipstone.training.run import Run

try:
    from huggingface_hub import ModelCard, ModelHubMixin, snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "models are shared through huggingface_hub, which is not installed. Run: pip install "
        "'skipstone[hub]'"
    ) from error

FILES = ["*.json", "*.safetensors", "README.md"]
"""All that is ever uploaded or downloaded."""

_CARD = "README.md"

_CALIBRATED = "calibrated"  # Entry of a config.

GENERATED = "<!-- Written by skipstone whenever it saves. Remove this line to keep your edits. -->"
"""A line of every card that is made here."""

_UNRECORDED = "## Training\n\nHow this model was trained is not recorded."

_USE = """## Use

    from skipstone.integrations.hub import HubModel

    model = HubModel.from_pretrained("owner/name").model
    path = model.rollout(context, until=...)  # context: skipstone.Sequences

Values go in and come out in the units of the data.
"""


class HubModel(
    ModelHubMixin,
    library_name="skipstone",
    pipeline_tag="time-series-forecasting",
    tags=["skipstone", "time-series", "neural-ode"],
):
    """A trained model and its card, to share: `save_pretrained`, `from_pretrained`, `push_to_hub`.

    The files are those of `model.save`, and loading is as strict: a file that is missing, damaged
    or of another model is an error, and no other kind of file is looked at.
    """

    def __init__(self, trained: Any, card: str | None = None):
        """A model with a card of its own, or with one that is made from what the model knows."""
        if not isinstance(trained, Model):
            raise InvalidInput(
                f"a HubModel must be given a Model; got {type(trained).__name__}. For the folder "
                "of a training use HubModel.from_run(folder)."
            )
        self.model = trained
        self._given = model_card(trained) if card is None else card
        self._weights = _digest(trained)

    @property
    def card(self) -> str:
        """The card as it was given; one that was generated is of the model as it is now."""
        if GENERATED not in self._given:
            return self._given
        header, body = _parted(self._given)
        record = body[body.find("## Training") : body.rfind("## Use")].strip()
        # What is known of a training is known of its weights alone.
        same = record.startswith("## Training") and _digest(self.model) == self._weights
        return header + _card_of(self.model, record if same else _UNRECORDED)

    @classmethod
    def from_run(cls, folder: str | Path) -> HubModel:
        """The model of a finished training, with a card of its data, settings and errors."""
        run = Run(folder)
        model = run.load()
        return cls(model, model_card(model, run))

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        force_download: bool = False,
        token: str | bool | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        revision: str | None = None,
        **model_kwargs: Any,
    ) -> HubModel:
        """A model from a folder or a repository, `owner/name`; settings are huggingface_hub's."""
        # Not by its own way, which reads a config before anybody has checked it.
        try:
            return cls._from_pretrained(
                model_id=str(pretrained_model_name_or_path),
                revision=revision,
                cache_dir=cache_dir,
                force_download=force_download,
                local_files_only=local_files_only,
                token=token,
                **model_kwargs,
            )
        except HFValidationError as error:
            raise HFValidationError(
                "a model must be a folder that exists or a repository, owner/name; got "
                f"{str(pretrained_model_name_or_path)!r}. {error}"
            ) from None

    def save_pretrained(self, save_directory: str | Path, **settings: Any) -> str | None:
        """Write model and card into a folder. A card of the user's own that is there is kept."""
        folder = Path(save_directory)
        # huggingface_hub removes a config before it writes one, which would be the run's record.
        if (folder / CONFIG).is_file() and "recipe" in read_config(folder):
            raise InvalidInput(
                f"{folder} must not be the folder of a training, whose record would be lost. "
                "Choose another."
            )
        if GENERATED in _read_card(folder):
            remove_file(folder / _CARD)
        return super().save_pretrained(folder, **settings)

    def push_to_hub(self, repo_id: str, **settings: Any) -> str:
        """Upload model and card to a repository, `owner/name`; settings are huggingface_hub's."""
        return super().push_to_hub(repo_id, **{"allow_patterns": FILES, **settings})

    def generate_model_card(self, *args: Any, **kwargs: Any) -> ModelCard:
        """The card, with the header that the Hub reads unless it has one."""
        if self.card.startswith("---\n"):
            return ModelCard(self.card)
        header = self._hub_mixin_info.model_card_data.to_yaml()
        return ModelCard(f"---\n{header}\n---\n\n{self.card}")

    def _save_pretrained(self, save_directory: Path) -> None:
        self.model.save(save_directory)
        # Intervals are in a file of their own, which can get lost on the way.
        calibrated = self.model.calibration is not None
        record = {**read_config(save_directory), _CALIBRATED: calibrated}
        write_sealed(save_directory / CONFIG, record)

    @classmethod
    def _from_pretrained(
        cls,
        *,
        model_id: str,
        revision: str | None,
        cache_dir: str | Path | None,
        force_download: bool,
        local_files_only: bool,
        token: str | bool | None,
        **model_kwargs: Any,
    ) -> HubModel:
        if model_kwargs:
            raise TypeError(
                "a model is loaded as it was saved, without further settings; got "
                f"{', '.join(model_kwargs)}. Leave them out."
            )
        folder = Path(model_id)
        if not folder.is_dir():
            found = snapshot_download(
                model_id,
                revision=revision,
                cache_dir=cache_dir,
                force_download=force_download,
                local_files_only=local_files_only,
                token=token,
                allow_patterns=FILES,
            )
            folder = Path(found)
        for name in (CONFIG, WEIGHTS):
            if not (folder / name).is_file():
                raise LocalEntryNotFoundError(
                    f"a model is a folder or a repository with {CONFIG} and {WEIGHTS}; {model_id} "
                    f"has no {name}. Other kinds of files are not read."
                )
        if read_config(folder).get(_CALIBRATED) and not (folder / CALIBRATION).is_file():
            raise LocalEntryNotFoundError(
                f"the model of {model_id} was saved with intervals; {CALIBRATION} is missing. "
                "Download or copy it again."
            )
        return cls(load(folder), _read_card(folder) or None)


def _read_card(folder: Path) -> str:
    """The card of a folder, whatever its encoding; empty if there is none."""
    path = folder / _CARD
    return path.read_bytes().decode("utf-8", errors="replace") if path.is_file() else ""


def _parted(card: str) -> tuple[str, str]:
    """The header that the Hub reads, which may be empty, and the text after it."""
    end = card.find("\n---\n", 3) if card.startswith("---\n") else -1
    return (card[: end + 5] + "\n", card[end + 5 :]) if end >= 0 else ("", card)


def _digest(model: Model[Any]) -> str:
    """A checksum of a model's weights."""
    found = hashlib.sha256()
    for name, part in model.state_dict().items():
        found.update(name.encode())
        found.update(part.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return found.hexdigest()


def model_card(model: Model[Any], run: Run | None = None) -> str:
    """A card in Markdown: the model and its units, and with a run what it was trained on and how
    far it is off."""
    if run is None:
        return _card_of(model, _UNRECORDED)
    training, errors = _table("Training", _of_training(run)), _table("Errors", _of_errors(run))
    return _card_of(model, f"{training}\n\n{errors}")


def _card_of(model: Model[Any], training: str) -> str:
    title, known = f"# {title_of(type(model))}", _table("Model", _of_model(model))
    return "\n\n".join([title, GENERATED, known, training, _USE])


def _table(title: str, rows: Iterator[tuple[str, str]]) -> str:
    lines = [f"| {name} | {fact} |" for name, fact in rows]
    return "\n".join([f"## {title}", "", "| | |", "|---|---|", *lines])


def _of_model(model: Model[Any]) -> Iterator[tuple[str, str]]:
    """What a model knows about itself and its data."""
    config = model.config
    yield "kind", f"`{kind_of(model)}`"
    yield "parameters", f"{sum(weight.numel() for weight in model.parameters()):,}"
    yield "features, controls", f"{config.dim}, {config.control}"
    yield "context", f"{config.num_context} observations"
    yield "typical spacing", f"{short_number(config.time_unit)}, in the data's unit of time"
    yield "center of each feature", _numbers(config.center)
    yield "scale of each feature", f"{_numbers(config.scale)}: one scaled unit, in the data's units"
    if getattr(config, "target_step", None) is not None:
        yield "target step", f"{short_number(config.target_step)} times the typical spacing"
    elif hasattr(config, "tolerance"):
        yield "tolerance", f"squared error of {short_number(config.tolerance)}, in scaled units"
    reach = model.calibration
    yield (
        "intervals",
        "none: it was not calibrated"
        if reach is None
        else f"split-conformal, up to {short_number(reach.longest)} after the context",
    )


def _of_training(run: Run) -> Iterator[tuple[str, str]]:
    """What was trained on what."""
    config, result = run.config, run.result
    for name, fact in config["data"].items():
        yield f"data: {name}", _plain(fact)
    yield "horizon", "whole sequences" if not config.get("horizon") else f"{config['horizon']}"
    yield "recipe", _plain(config["recipe"])
    yield "seed", f"{config['seed']}"
    yield "steps", f"{result['steps']}, best at {result['best_step']}"
    yield "skipstone", f"{result.get('version', 'unknown')}, finished {result.get('finished', '')}"


def _of_errors(run: Run) -> Iterator[tuple[str, str]]:
    """How far predictions are off, on what data, in which units."""
    error = short_number(run.result["validation_error"])
    yield "validation", f"{error}, mean squared error of rollouts, in scaled units"
    for name in HEADLINES:
        found = run.evaluation.get(name)
        if found:
            bounds = f"{short_number(found['low'])} to {short_number(found['high'])}"
            squared = ", in squared units of the data" if name.endswith("mse") else ""
            yield (
                f"test: {name.replace('_', ' ')}",
                f"{short_number(found['value'])} ({bounds}){squared}",
            )
    for each in (run.evaluation.get("forecasts") or {}).get("features", ()):
        errors = [f"{name} {short_number(found['value'])}" for name, found in each["rmse"].items()]
        yield f"test: RMSE of {each['name']}", f"{', '.join(errors)}, in its own unit"


def _numbers(numbers: tuple[float, ...]) -> str:
    shown = ", ".join(short_number(number) for number in numbers[:8])
    return f"{shown}, ..." if len(numbers) > 8 else shown


def _plain(fact: Any) -> str:
    """A record on one line of a table."""
    if isinstance(fact, dict):
        return ", ".join(f"{name}: {_plain(each)}" for name, each in fact.items())
    if isinstance(fact, list | tuple):
        return " ".join(_plain(each) for each in fact)
    return str(fact).replace("|", "\\|").replace("\n", " ")

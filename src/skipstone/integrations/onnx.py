"""ONNX: models that step, as files that `onnx_rollout` rolls out without torch.

pip install 'skipstone[onnx]'
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import importlib.util
import logging
import pathlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim

from skipstone.errors import InvalidInput
from skipstone.files import make_folder, write_bytes
from skipstone.integrations.exporting import ContextReader, Query, Stepper, as_exportable
from skipstone.models.base import Model, SteppingModel
from skipstone.models.controls import SAME_TIME
from skipstone.records import write_sealed

FOLDER_FORMAT = 3
"""Number of the folder's format, which `onnx_rollout` checks."""

AGREEMENT = 1e-5
"""Largest difference from torch that an exported graph may have, relative to numbers of size one:
exporters have been wrong without a word."""

ROWS = (1, 2, 7)
"""Batch sizes for which that is checked."""


def export_onnx(model: Model[Any], folder: str | pathlib.Path) -> pathlib.Path:
    """Write a model as ONNX: `context.onnx`, `step.onnx`, `query.onnx` and `rollout.json`.

    For any number of rows. Scaling, missing values, whole steps and controls are in there; a
    calibration is not. Each graph is compared with torch before any is written. Roll out with
    `skipstone.integrations.onnx_rollout.OnnxModel(folder)`.
    """
    _require_installed()
    stepping = as_exportable(model)
    folder = pathlib.Path(folder)
    make_folder(folder)  # What cannot be written to is said before the work.
    copied = copy.deepcopy(stepping).cpu().eval().requires_grad_(False)
    graphs: dict[str, nn.Module] = {
        "context": ContextReader(copied),
        "step": Stepper(copied),
        "query": Query(copied),
    }
    written = {name: _checked_graph(copied, name, graph) for name, graph in graphs.items()}
    # A folder that is written over has a description of other graphs until all of it is there.
    for name, content in written.items():
        write_bytes(folder / f"{name}.onnx", content)
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in written.items()}
    write_sealed(folder / "rollout.json", {**_described(copied), "graphs": checksums})
    return folder


@torch.no_grad()
def _checked_graph(model: SteppingModel[Any], name: str, graph: nn.Module) -> bytes:
    """A graph as ONNX, if onnxruntime computes with it what torch does."""
    written = _as_onnx(graph, example_inputs(model, name, rows=5))
    for rows in ROWS:
        _require_agreement(name, written, graph, example_inputs(model, name, rows))
    return written


def _require_installed() -> None:
    for name in ("onnx", "onnxscript", "onnxruntime"):
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(
                f"an export needs {name}, which is not installed. Run: pip install "
                "'skipstone[onnx]'"
            )


def _described(model: SteppingModel[Any]) -> dict[str, Any]:
    """What a rollout has to know beside the graphs."""
    config = model.config
    names = ("dim", "control", "num_context", "time_unit", "missing")
    scales = ("center", "scale", "control_center", "control_scale")
    return {
        "format": FOLDER_FORMAT,
        "kind": type(model).__name__,
        **{name: getattr(config, name) for name in (*names, *scales)},
        "min_step": model.min_step,
        "drives": model.crosses_controls,
        "same_time": SAME_TIME,
    }


def example_inputs(model: SteppingModel[Any], graph: str, rows: int) -> dict[str, Tensor]:
    """Random inputs of a graph, by name. The first value is missing where that may be."""
    config, generator = model.config, torch.Generator().manual_seed(rows)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator) + 0.5

    if graph == "context":
        values = normal(rows, config.num_context, config.dim)
        if config.missing:
            values[0, :, 0] = torch.nan
        gaps = uniform(rows, config.num_context)
        gaps[:, 0] = 0
        found = {"values": values, "gaps": gaps}
        if config.control:
            found["controls"] = normal(rows, config.num_context, config.control)
        return found
    state = normal(*model.initial_state(rows).shape).tanh()
    found = {"values": normal(rows, config.dim), "state": state, "lengths": 3 * uniform(rows)}
    if graph == "step" and config.control:
        found["controls"] = normal(rows, config.control)
    if graph == "query":
        found["index"] = torch.arange(rows + 4) % rows
        found["offsets"] = found["lengths"][found["index"]] * (uniform(rows + 4) - 0.5)
    if model.crosses_controls:
        found["held"] = normal(rows, config.control)
        found["changes"] = (2 * uniform(rows, 3).cumsum(1)).double()
        found["jumps"] = normal(rows, 3, config.control)
    return found


SIZES = {"index": "queries", "offsets": "queries"}
"""What the first axis of an input counts, if not rows."""


def _as_onnx(graph: nn.Module, inputs: dict[str, Tensor]) -> bytes:
    """A graph for any number of rows, queries and changes of control."""
    sizes = {name: Dim(name) for name in ("rows", "queries", "changes")}
    shapes: dict[str, Any] = {name: {0: sizes[SIZES.get(name, "rows")]} for name in inputs}
    for name in ("changes", "jumps"):
        if name in shapes:
            shapes[name][1] = sizes["changes"]
    names = ["predicted"] if isinstance(graph, Query) else ["next_values", "next_state", "step"]
    with _quietly():
        program = torch.export.export(graph, (), inputs, dynamic_shapes=shapes, strict=False)
        if any(node.target is _CUMMAX for node in program.graph.nodes):
            # ONNX has no operator for it.
            table = torch.export.default_decompositions()
            table[_CUMMAX] = _running_maximum
            program = program.run_decompositions(table)
        exported = torch.onnx.export(
            program, dynamo=True, external_data=False, output_names=names, verbose=False
        )
    assert exported is not None
    proto = exported.model_proto
    for node in proto.graph.node:
        # It holds file names of this machine.
        del node.metadata_props[:]
    return proto.SerializeToString()


_CUMMAX = torch.ops.aten.cummax.default


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without the warnings that exporters give about themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        logging.disable(before)


def _running_maximum(values: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """`cummax` over an axis of known size; nobody asks for the indices."""
    first, *others = values.unbind(dim)
    found = [first]
    for each in others:
        found.append(found[-1].maximum(each))
    return torch.stack(found, dim), torch.zeros_like(values, dtype=torch.long)


def _require_agreement(
    name: str, written: bytes, graph: nn.Module, inputs: dict[str, Tensor]
) -> None:
    """Raise unless onnxruntime computes what torch does."""
    import onnxruntime

    session = onnxruntime.InferenceSession(written, providers=["CPUExecutionProvider"])
    found = session.run(None, {name: value.numpy() for name, value in inputs.items()})
    expected = graph(**inputs)
    for ours, theirs in zip(
        expected if isinstance(expected, tuple) else (expected,), found, strict=True
    ):
        off = float(np.max(np.abs(ours.numpy() - theirs) / (1 + np.abs(ours.numpy()))))
        if not off <= AGREEMENT:
            raise InvalidInput(
                f"the graph {name!r} must agree with torch within {AGREEMENT:g}; onnxruntime is "
                f"off by {off:.2g} for {len(inputs['values'])} rows. Nothing was written; "
                "try the versions of torch, onnxscript and onnxruntime in constraints.txt."
            )

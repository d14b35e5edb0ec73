"""Decentralized learning on directed graphs with learned edge weights."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from d3gd import (
        callbacks,
        data,
        graphs,
        metrics,
        plots,
        privacy,
        problems,
        schedules,
        sites,
        theory,
        topologies,
        transports,
        weights,
    )
    from d3gd import torch as torch
    from d3gd.algorithms.acgt import ACGT
    from d3gd.algorithms.base import Algorithm
    from d3gd.algorithms.centralized import Centralized
    from d3gd.algorithms.choco import CHOCO
    from d3gd.algorithms.compressed import Compressed
    from d3gd.algorithms.d3gd import D3GD
    from d3gd.algorithms.dgd import DGD
    from d3gd.algorithms.didgd import DiDGD
    from d3gd.algorithms.diging import DIGing
    from d3gd.algorithms.exact_diffusion import ExactDiffusion
    from d3gd.algorithms.extra import EXTRA
    from d3gd.algorithms.frost import FROST
    from d3gd.algorithms.frsd import FRSD
    from d3gd.algorithms.kgt import KGT
    from d3gd.algorithms.local import Local
    from d3gd.algorithms.momentum_tracking import MomentumTracking
    from d3gd.algorithms.optimizers import AdamW, Momentum
    from d3gd.algorithms.perron import PerronD3GD
    from d3gd.algorithms.pulm import PULMDGD
    from d3gd.algorithms.push_diging import PushDIGing
    from d3gd.algorithms.push_pull import PushPull
    from d3gd.algorithms.qg_adam import QGAdam
    from d3gd.algorithms.qg_momentum import QGMomentum
    from d3gd.algorithms.rfast import RFAST
    from d3gd.algorithms.sgp import SGP
    from d3gd.checks import check_method, check_problem
    from d3gd.comparison.compare import compare
    from d3gd.conditions import Conditions
    from d3gd.digraph import Digraph
    from d3gd.engine import run
    from d3gd.errors import D3GDError
    from d3gd.privacy import Privacy
    from d3gd.result import Result
    from d3gd.sweeps.sweep import sweep

__version__ = "0.1.0"

# Imported at first use, so that `import d3gd` and `d3gd --help` do not load modules that they do not need.
_HOMES = {
    "ACGT": "algorithms.acgt",
    "AdamW": "algorithms.optimizers",
    "Algorithm": "algorithms.base",
    "CHOCO": "algorithms.choco",
    "Compressed": "algorithms.compressed",
    "Conditions": "conditions",
    "Centralized": "algorithms.centralized",
    "D3GD": "algorithms.d3gd",
    "D3GDError": "errors",
    "DGD": "algorithms.dgd",
    "DIGing": "algorithms.diging",
    "DiDGD": "algorithms.didgd",
    "Digraph": "digraph",
    "EXTRA": "algorithms.extra",
    "ExactDiffusion": "algorithms.exact_diffusion",
    "FROST": "algorithms.frost",
    "FRSD": "algorithms.frsd",
    "KGT": "algorithms.kgt",
    "Local": "algorithms.local",
    "Momentum": "algorithms.optimizers",
    "MomentumTracking": "algorithms.momentum_tracking",
    "PULMDGD": "algorithms.pulm",
    "PerronD3GD": "algorithms.perron",
    "Privacy": "privacy",
    "PushDIGing": "algorithms.push_diging",
    "PushPull": "algorithms.push_pull",
    "QGAdam": "algorithms.qg_adam",
    "QGMomentum": "algorithms.qg_momentum",
    "RFAST": "algorithms.rfast",
    "Result": "result",
    "check_method": "checks.method",
    "check_problem": "checks.problem",
    "compare": "comparison.compare",
    "SGP": "algorithms.sgp",
    "run": "engine",
    "sweep": "sweeps.sweep",
}
_ROOMS = (
    "callbacks",
    "data",
    "graphs",
    "metrics",
    "plots",
    "privacy",
    "problems",
    "schedules",
    "sites",
    "theory",
    "topologies",
    "torch",
    "transports",
    "weights",
)

__all__ = [  # without torch, which a star import would put in place of PyTorch
    "ACGT",
    "CHOCO",
    "D3GD",
    "DGD",
    "EXTRA",
    "FROST",
    "FRSD",
    "KGT",
    "PULMDGD",
    "RFAST",
    "SGP",
    "AdamW",
    "Algorithm",
    "Centralized",
    "Compressed",
    "Conditions",
    "D3GDError",
    "DIGing",
    "DiDGD",
    "Digraph",
    "ExactDiffusion",
    "Local",
    "Momentum",
    "MomentumTracking",
    "PerronD3GD",
    "Privacy",
    "PushDIGing",
    "PushPull",
    "QGAdam",
    "QGMomentum",
    "Result",
    "callbacks",
    "check_method",
    "check_problem",
    "compare",
    "data",
    "graphs",
    "metrics",
    "plots",
    "privacy",
    "problems",
    "run",
    "schedules",
    "sites",
    "sweep",
    "theory",
    "topologies",
    "transports",
    "weights",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"d3gd.{name}")
    if name in _HOMES:
        value = getattr(import_module(f"d3gd.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'd3gd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_HOMES, *_ROOMS, *(name for name in globals() if name.startswith("__"))])

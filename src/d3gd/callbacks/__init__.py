"""Callbacks: early stopping, and records in TensorBoard, MLflow or Weights & Biases while a run goes on."""

from d3gd.callbacks.mlflow import MLflow
from d3gd.callbacks.stopping import EarlyStopping
from d3gd.callbacks.tensorboard import TensorBoard
from d3gd.callbacks.wandb import WandB

__all__ = ["EarlyStopping", "MLflow", "TensorBoard", "WandB"]

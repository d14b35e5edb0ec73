"""Objectives to minimize, one per agent."""

from d3gd.problems.base import Problem
from d3gd.problems.functions import from_functions
from d3gd.problems.labelled import digits_classification, label_skewed_classification, mixture_classification
from d3gd.problems.quadratic import Quadratic, quadratic
from d3gd.problems.sigmoid import SigmoidClassification, sigmoid_classification
from d3gd.problems.softmax import SoftmaxRegression, softmax_regression
from d3gd.problems.torch.modules import TorchModule, torch_module

__all__ = [
    "Problem",
    "Quadratic",
    "SigmoidClassification",
    "SoftmaxRegression",
    "TorchModule",
    "digits_classification",
    "from_functions",
    "label_skewed_classification",
    "mixture_classification",
    "quadratic",
    "sigmoid_classification",
    "softmax_regression",
    "torch_module",
]

"""Figure 1, read otherwise."""

import numpy as np
from scipy.optimize import approx_fprime
from scipy.special import expit

import d3gd
from d3gd.reproduce.readings import SignedLabels


def test_signed_labels_have_the_gradient_of_their_loss():
    drawn = d3gd.problems.sigmoid_classification(
        agents=3, classes=4, features=2, samples=5, seed=1, regularization=0.1, test_samples=0
    )
    x = np.random.default_rng(0).normal(size=(3, drawn.dim))
    for agent, found in enumerate(SignedLabels(drawn).gradients(x)):

        def loss(flat, X=drawn.X[agent], y=drawn.y[agent]):
            signs = 2.0 * (np.arange(4) == y[:, None]) - 1
            return expit(signs * (X @ flat.reshape(4, 2).T)).sum(axis=1).mean() + 0.05 * flat @ flat

        assert np.allclose(found, approx_fprime(x[agent], loss), atol=1e-6)

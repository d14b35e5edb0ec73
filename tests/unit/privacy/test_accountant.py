import math

import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import d3gd
from d3gd.privacy import noise_for
from d3gd.privacy.accountant import epsilon


def gaussian(noise, steps, delta):
    """The exact epsilon of composed Gaussian mechanisms (Balle and Wang, 2018)."""
    mu = math.sqrt(steps) / noise
    excess = lambda e: norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu) - delta  # noqa: E731
    return brentq(excess, 0, 300)


@pytest.mark.parametrize(("noise", "steps"), [(1.0, 1), (10.0, 100), (5.0, 300), (20.0, 50)])
def test_without_sampling_epsilon_is_that_of_one_gaussian(noise, steps):
    found = epsilon([(noise, 1.0, steps)], 1e-5)
    assert found == pytest.approx(gaussian(noise, steps, 1e-5), rel=1e-4)


def test_with_sampling_epsilon_is_that_of_the_library():
    import dp_accounting as dp
    from dp_accounting import pld

    accountant = pld.PLDAccountant(dp.NeighboringRelation.ADD_OR_REMOVE_ONE)  # a finer grid, and the usual neighbours
    accountant.compose(dp.PoissonSampledDpEvent(0.2, dp.GaussianDpEvent(2.0)), 500)
    exact = accountant.get_epsilon(1e-5)
    assert exact <= epsilon([(2.0, 0.2, 500)], 1e-5) <= 1.001 * exact


def test_epsilon_adds_up_over_runs_and_grows_with_each():
    one, two = epsilon([(2.0, 0.2, 100)], 1e-5), epsilon([(2.0, 0.2, 100), (4.0, 0.1, 50)], 1e-5)
    assert epsilon([], 1e-5) == 0.0
    assert one < two < one + epsilon([(4.0, 0.1, 50)], 1e-5) + 1e-9
    assert epsilon([(2.0, 0.2, 60), (2.0, 0.2, 40)], 1e-5) == pytest.approx(one, rel=1e-3)


@pytest.mark.parametrize(("wanted", "sample"), [(1.0, 1.0), (3.0, 0.2), (8.0, 0.05)])
def test_the_noise_for_an_epsilon_gives_that_epsilon(wanted, sample):
    noise = noise_for(wanted, steps=200, sample=sample)
    assert wanted * 0.99 < d3gd.Privacy(clip=1.0, noise=noise).epsilon(steps=200, sample=sample) <= wanted

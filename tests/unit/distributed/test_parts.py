"""Problems that every rank makes for itself."""

import numpy as np
import pytest

import d3gd
from d3gd.errors import D3GDError
from d3gd.transports.threads import on_threads

GRAPH = d3gd.graphs.ring(5)


class Mine(d3gd.problems.Problem):
    """A user's own problem, which says nothing about its settings."""

    dim = 3

    def __init__(self, agents, data=0, regularization=0.1, batch=0):
        self.ids, self.agents = np.asarray(agents), len(agents)
        self.data, self.regularization, self.batch = data, regularization, batch

    def gradients(self, x, k=None):
        drawn = 0 if k is None else (k + self.batch) % 7
        return (1 + self.regularization) * x - np.sin(self.ids + self.data)[:, None] + 0.01 * drawn


def run(ranks, make):
    def work(rank):
        return d3gd.run(d3gd.DiDGD(step_size=0.1), GRAPH, make(rank.rank), iterations=4, transport=rank, progress=False)

    return on_threads(ranks, work, timeout=5)


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("setting", ["data", "regularization", "batch"])
def test_another_setting_on_one_rank_is_noticed(ranks, setting):
    with pytest.raises(D3GDError, match="same agents"):
        run(ranks, lambda rank: lambda agents: Mine(agents, **{setting: int(rank == ranks - 1)}))


@pytest.mark.parametrize("ranks", [2, 5])
def test_ranks_that_have_their_own_data_only_are_trusted(ranks):
    def own_only(rank):
        held = []

        def make(agents):
            if held and list(agents) != held:
                raise KeyError(agents[0])
            held.extend(agents)
            return Mine(agents)

        return make

    def whatever_is_asked(rank):
        held = []

        def make(agents):
            held.append(Mine(agents))
            return held[0]

        return make

    alone = d3gd.run(d3gd.DiDGD(step_size=0.1), GRAPH, Mine(range(5)), iterations=4, progress=False).x
    for make in (own_only, whatever_is_asked, lambda rank: Mine):
        assert all(np.array_equal(result.x, alone) for result in run(ranks, make))

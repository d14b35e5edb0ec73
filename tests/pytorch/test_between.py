"""Local steps and compressed messages of an optimizer: the iterates of a stacked run, states, and what does not fit."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import d3gd
from d3gd.algorithms.base import Heading, Models
from d3gd.errors import SettingsError
from d3gd.state import Copies, PerAgent, Scalar
from d3gd.torch import DecentralizedOptimizer, network, slices
from d3gd.torch.device import OneAgent
from d3gd.torch.saving import read, saved
from d3gd.transports.threads import on_threads

AGENTS, EVERY, STEPS, SAVED = 3, 4, 20, 10
GRAPH = d3gd.Digraph.from_edges(3, [(0, 1), (1, 2), (2, 0), (0, 2)])
PARTS = [
    (np.random.default_rng(agent).normal(size=(8 + agent, 5)), np.arange(8 + agent) % (agent + 2))
    for agent in range(AGENTS)
]


START = torch.linspace(-0.4, 0.4, 24, dtype=torch.float64)


def model():
    """The same start in every thread: they share the generator of PyTorch."""
    made = nn.Linear(5, 4).double()
    nn.utils.vector_to_parameters(START.clone(), made.parameters())
    return made


def trained(transport, made, steps, state=None):
    """The models after each step, and the optimizer's state."""
    net = model()
    opt = made(net.parameters(), network=network(GRAPH, transport=transport))
    if state is not None:
        opt.load_state_dict(state[opt.agent])
    X, y = (torch.tensor(part) for part in PARTS[opt.agent])
    path = []
    for _ in range(steps):
        opt.zero_grad()
        cross_entropy(net(X), y).backward()
        opt.step()
        path.append(nn.utils.parameters_to_vector(net.parameters()).detach().numpy().copy())
    return np.array(path), opt.state_dict(), opt.network.bytes_sent


CASES = {
    "every": ({"every": EVERY}, {}, None),
    "not steered": ({"every": EVERY, "steered": False}, {}, None),
    "compress": ({}, {"compress": "int8"}, None),
    "both": ({"every": EVERY}, {"compress": "topk:0.3"}, None),
    "both, momentum": ({"every": EVERY}, {"compress": "bf16"}, 0.5),
}


@pytest.mark.parametrize(
    ("case", "method"),
    [
        *((case, d3gd.PerronD3GD) for case in CASES),
        *((case, partial(d3gd.PerronD3GD, momentum=0.5)) for case in ("every", "not steered", "compress", "both")),
        *((case, partial(d3gd.QGAdam, momentum=0.5)) for case in ("every", "not steered", "compress", "both")),
        ("both, momentum", d3gd.FROST),
        ("every", partial(d3gd.PerronD3GD, rule="planned")),  # looks at the directions of local steps
        ("not steered", partial(d3gd.PerronD3GD, rule="planned")),
        ("every", partial(d3gd.PerronD3GD, rule="fixed", perron="tracked")),
    ],
)
def test_it_follows_the_stacked_run_and_resumes_to_the_bit(case, method):
    every, compress, momentum = CASES[case]
    made = partial(DecentralizedOptimizer, algorithm=method(step_size=0.05), **every, **compress)
    stacked = method(step_size=0.05)
    if momentum is not None:
        sgd = partial(torch.optim.SGD, lr=0.05, momentum=momentum)
        made = partial(DecentralizedOptimizer, algorithm=method(step_size=1), local=sgd, **every, **compress)
    if every or momentum is not None:
        stacked = d3gd.Local(method=stacked, optimizer=momentum and d3gd.Momentum(momentum=momentum), **every)
    stacked = d3gd.Compressed(method=stacked, **compress) if compress else stacked
    found = on_threads(AGENTS, lambda rank: trained(rank, made, STEPS))
    problem = d3gd.problems.torch_module(model(), PARTS, loss=cross_entropy)
    rounds = STEPS // every.get("every", 1)
    expected = d3gd.run(stacked, GRAPH, problem, iterations=rounds, metrics=["bytes"])
    np.testing.assert_allclose([path[-1] for path, _, _ in found], expected.x, rtol=0, atol=1e-11)
    assert sum(sent for *_, sent in found) == expected.metrics["bytes"][-1]
    half = on_threads(AGENTS, lambda rank: trained(rank, made, SAVED))  # in the middle of a round
    states = [state for _, state, _ in half]
    rest = on_threads(AGENTS, lambda rank: trained(rank, made, STEPS - SAVED, states))
    for (path, *_), (again, *_) in zip(found, rest, strict=True):
        assert np.array_equal(path[SAVED:], again)


def test_copies_are_sent_in_one_order_after_a_state_is_loaded():
    """Sets of names have an order of their own in every process, and messages in different orders do not match."""

    class Held(NamedTuple):
        held: Copies

    counts = {"agent": 0, "every": 1, "network": 0, "iteration": 3, "skipped": 0}
    own = saved(Held({}), counts, [])
    names = [f"state.held.m{i}" for i in range(20)]
    state = {name: torch.tensor(array) for name, array in own.items()} | dict.fromkeys(names[::-1], torch.zeros(1, 2))
    arrays, _ = read(state, own, Held({}), local=False)
    assert [name for name in arrays if name in names] == sorted(names)


def test_an_outer_momentum_takes_a_closure():
    """It is a method that asks for gradients at other points: those of the local steps."""
    method = d3gd.Local(method=d3gd.PerronD3GD(step_size=0.05), every=EVERY, outer=0.5)

    def train(rank):
        net = model()
        opt = DecentralizedOptimizer(net.parameters(), method, network(GRAPH, transport=rank))
        X, y = (torch.tensor(part) for part in PARTS[opt.agent])

        def closure():
            opt.zero_grad()
            loss = cross_entropy(net(X), y)
            loss.backward()
            return loss

        for _ in range(5):
            opt.step(closure)
        return nn.utils.parameters_to_vector(net.parameters()).detach().numpy()

    problem = d3gd.problems.torch_module(model(), PARTS, loss=cross_entropy)
    expected = d3gd.run(method, GRAPH, problem, iterations=5).x
    np.testing.assert_allclose(on_threads(AGENTS, train), expected, rtol=0, atol=1e-12)

    net = model()
    opt = DecentralizedOptimizer(net.parameters(), method, network(d3gd.graphs.complete(1)))
    net.weight.grad = torch.zeros_like(net.weight)
    with pytest.raises(SettingsError, match=r"in place of d3gd\.Local give the optimizer every="):
        opt.step()


def test_between_exchanges_nothing_is_sent_and_schedulers_may_move():
    def train(rank):
        net = model()
        opt = DecentralizedOptimizer(
            net.parameters(), d3gd.PerronD3GD(step_size=0.1), network(GRAPH, transport=rank), every=3
        )
        schedule = torch.optim.lr_scheduler.StepLR(opt, 2, gamma=0.5)
        X, y = (torch.tensor(part) for part in PARTS[opt.agent])
        sent = []
        for _ in range(6):
            opt.zero_grad()
            cross_entropy(net(X), y).backward()
            opt.step()
            schedule.step()
            sent.append(opt.network.bytes_sent)
        return sent

    for sent in on_threads(AGENTS, train):
        assert sent[0] == sent[1] < sent[2] == sent[3] == sent[4] < sent[5]


@pytest.mark.parametrize(
    ("dtype", "compress", "floor"), [(torch.float64, "int8", 1e-9), (torch.float32, None, 1e-6)], ids=["int8", "single"]
)
def test_its_limit_is_that_of_all_data(dtype, compress, floor):
    """Agents with labels of their own and eight local steps: the common model is that of pooled data.

    In single precision, steps stop moving the model where they are below its rounding.
    """

    def objective(net, X, y):
        ridge = 0.1 * sum(p.square().sum() for p in net.parameters())
        return cross_entropy(net(torch.tensor(X).to(net.weight)), torch.tensor(y)) + ridge

    def train(rank):
        net = model().to(dtype)
        agent = network(GRAPH, transport=rank)
        made = DecentralizedOptimizer(
            net.parameters(), d3gd.PerronD3GD(step_size=0.2), agent, every=8, compress=compress
        )
        for _ in range(800):
            made.zero_grad()
            objective(net, *PARTS[made.agent]).backward()
            made.step()
        return net

    for net in on_threads(AGENTS, train):
        loss = sum(objective(net, *part) for part in PARTS) / AGENTS
        slopes = torch.autograd.grad(loss, list(net.parameters()))
        assert max(float(slope.abs().max()) for slope in slopes) < floor


def test_mistakes_are_told():
    alone = partial(DecentralizedOptimizer, model().parameters(), network=network(d3gd.graphs.complete(1)))
    for make, message in [
        (partial(alone, d3gd.PULMDGD(step_size=0.1), every=2), "says nothing of where its agents head"),
        (partial(alone, d3gd.DiDGD(step_size=0.1), every=0), "every = 0"),
        (partial(alone, d3gd.DiDGD(step_size=0.1), compress="zip"), "compress = 'zip'"),
        (partial(alone, d3gd.QGAdam(step_size=1), local=torch.optim.Adam), "makes directions of gradients itself"),
    ]:
        with pytest.raises(SettingsError, match=message):
            make()


class Counted(NamedTuple):
    x: PerAgent
    directions: Scalar
    column: PerAgent


@dataclass(frozen=True, kw_only=True)
class Counting(d3gd.Algorithm[Counted]):
    """Descent that counts its directions, in a number and in a column."""

    step_size: float
    coordinatewise = True
    needs = "undirected links"

    def init(self, net, x0):
        return Counted(x0, 0.0, np.zeros((len(x0), 1)))

    def direction(self, net, s, g, t):
        return s._replace(directions=s.directions + 1, column=s.column + 1), g

    def arrive(self, net, s, m, k):
        return s._replace(x=net.mix(net.a0, net.exchange(x=m).x))

    def step(self, net, gradient, s, k):
        s, d = self.direction(net, s, gradient(), k)
        return self.arrive(net, s, net.precise(s.x - self.step_size * d), k)

    def heading(self, net, s, k):
        return Heading(1.0, 0.0)


@pytest.mark.parametrize("width", [10, slices._WHOLE + 1])
def test_what_directions_change_besides_rows_is_kept_once_for_all_slices(width):
    x = [nn.Parameter(torch.ones(size)) for size in (width // 2, width - width // 2)]
    alone = network(d3gd.graphs.ring(1))
    opt = DecentralizedOptimizer(x, Counting(step_size=0.1), alone, every=3)
    for _ in range(6):
        for part in x:
            part.grad = torch.ones_like(part)
        opt.step()
    state = opt.state_dict()
    assert float(state["state.directions"]) == 6
    assert state["state.column"].item() == 6


@dataclass(frozen=True)
class Plain:
    """A method that is not derived from Algorithm, and says no more than local steps need."""

    step_size: float
    needs, survives, relies_on, exact = "undirected links", frozenset(), "all", False

    def init(self, net, x0):
        return Models(x0)

    def point(self, s):
        return s.x

    def step(self, net, gradient, s, k):
        return Models(net.mix(net.a0, net.exchange(x=net.precise(s.x - self.step_size * gradient())).x))

    def weights(self, net, s):
        return net.a0

    def scale(self, net, s):
        return None

    def heading(self, net, s, k):
        return Heading(1.0, 0.0)


def test_a_method_that_makes_no_directions_needs_none_of_their_functions():
    x = nn.Parameter(torch.ones(3))
    opt = DecentralizedOptimizer([x], Plain(0.1), network(d3gd.graphs.ring(1)), every=2)
    for _ in range(4):
        x.grad = torch.ones(3)
        opt.step()
    torch.testing.assert_close(x.detach(), torch.full((3,), 0.6))


class Changing(OneAgent):
    """A network that changes before its 20th exchange; as between sites, methods then start again."""

    changed = 0

    def begin(self, k):
        self.due = k == 20 and not self.changed
        self.changed = 20 if k >= 20 else 0
        return k

    def age(self, k):
        return max(0, k - self.changed)

    def renewed(self, algorithm, state):
        return algorithm.init(self, algorithm.point(state)) if self.due else state

    def take(self, algorithm, gradient, state, k):
        return algorithm.step(self, gradient, state, self.age(k))


@pytest.mark.parametrize("every", [1, 2])
def test_when_a_network_changes_the_bias_of_new_scales_is_corrected_anew(every):
    """Or else Adam's first steps would be 1 / sqrt(1 - 0.999) times as long."""
    graph = d3gd.graphs.ring(1)
    net = Changing(graph, d3gd.weights.metropolis(graph), needs="in-neighbours")
    x, moves = nn.Parameter(torch.full((2,), 5.0, dtype=torch.float64)), []
    opt = DecentralizedOptimizer([x], d3gd.QGAdam(step_size=0.01, momentum=0.0), net, every=every)
    for _ in range(40 * every):
        before = x.detach().clone()
        x.grad = 2 * (before - 1)
        opt.step()
        moves.append(float((x.detach() - before).abs().max()))
    assert max(moves) <= 0.01 * (1 + 1e-6)

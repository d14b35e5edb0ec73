"""What a user's own functions return: another form gives the same run, another meaning is refused in one line."""

import numpy as np
import pytest
from scipy import sparse

import d3gd
from d3gd.problems import Problem, from_functions
from d3gd.result import Result

GRAPH = d3gd.graphs.ring(4)
METHOD = d3gd.DiDGD(step_size=0.1)


class Mine(Problem):
    """Half the squared distance to a target each, with some of its answers changed."""

    targets = np.arange(12.0).reshape(4, 3)

    def __init__(self, gradients=None, losses=None, **attributes):
        self.agents, self.dim = self.targets.shape
        self.change, self.change_loss = gradients or (lambda g, k: g), losses or (lambda values: values)
        vars(self).update(attributes)

    def gradients(self, x, k=None):
        g = x - self.targets
        return g if k is None else self.change(g, k)

    def losses(self, x):
        return self.change_loss(0.5 * ((x - self.targets) ** 2).sum(axis=1))


def run(problem, method=METHOD, **options):
    return d3gd.run(method, GRAPH, problem, **{"iterations": 6, "every": 2} | options)


def refused(problem, **options):
    with pytest.raises(d3gd.D3GDError) as caught:
        run(problem, **options)
    assert "\n" not in str(caught.value)


KEEPING = [
    d3gd.D3GD(step_size=0.1),
    d3gd.PushPull(step_size=0.1),
    d3gd.PushDIGing(step_size=0.1),
]


@pytest.mark.parametrize("method", KEEPING, ids=lambda method: type(method).__name__)
def test_a_problem_may_return_one_buffer_again_and_again(method):
    buffer = np.empty((4, 3))

    def reused(g, k):
        buffer[:] = g
        return buffer

    assert np.array_equal(run(Mine(reused), method).x, run(Mine(), method).x)


def test_a_built_in_problem_whose_method_is_replaced_may_do_so_too():
    class Replaced(d3gd.problems.Quadratic):
        buffer = np.empty((4, 3))

        def gradients(self, x, k=None):
            self.buffer[:] = super().gradients(x, k)
            return self.buffer

    plain = d3gd.problems.quadratic(agents=4, dim=3)
    method = d3gd.PushPull(step_size=0.01)
    assert np.array_equal(run(Replaced(plain.Q, plain.b), method).x, run(plain, method).x)


WRONG = {
    "sparse": lambda a: sparse.csr_array(np.atleast_2d(a)),
    "complex": lambda a: a + 1j,
    "texts": lambda a: a.astype(str),
    "dates": lambda a: a.astype("M8[s]"),
    "objects": lambda a: a.astype(object),
    "masked": lambda a: np.ma.masked_array(a, a > 0),
    "nothing": lambda a: None,
    "a dictionary": lambda a: {0: a},
    "one more": lambda a: np.concatenate([a, a[:1]]),
    "one less": lambda a: a[:-1],
    "one more axis": lambda a: a[..., None],
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_array_of_real_numbers_is_refused(name):
    change = WRONG[name]
    refused(Mine(lambda g, k: change(g) if k == 3 else g))
    refused(Mine(losses=change))
    refused(from_functions(agents=4, dim=3, gradient=lambda i, x: change(x)))
    refused(Mine(start=lambda: change(np.zeros(3))))
    if name != "nothing":
        refused(Mine(accuracies=lambda x: change(np.full(len(x), 0.5))))


@pytest.mark.parametrize("value", ["1.5", None, 1j, [1.0], np.ones(1), np.datetime64("2020")])
def test_a_loss_is_one_real_number(value):
    refused(from_functions(agents=4, dim=3, gradient=lambda i, x: x, loss=lambda i, x: value))


@pytest.mark.parametrize("change", [lambda a: a.tolist(), np.asfortranarray, lambda a: a.astype(">f8")])
def test_other_forms_of_the_same_numbers_give_the_same_run(change):
    found, control = run(Mine(lambda g, k: change(g), change)), run(Mine())
    assert np.array_equal(found.x, control.x)
    assert np.array_equal(found.metrics["loss"], control.metrics["loss"])


@pytest.mark.parametrize("size", [3.0, "3", None, 0, -3, [3], float("nan"), 2**62, 10**30, True])
@pytest.mark.parametrize("name", ["agents", "dim"])
def test_sizes_are_whole_numbers(name, size):
    refused(Mine(**{name: size}))


def test_sizes_of_numpy_are_as_good(tmp_path):
    assert np.array_equal(run(Mine(agents=np.int64(4), dim=np.uint8(3)), out=tmp_path / "run").x, run(Mine()).x)


@pytest.mark.parametrize("callbacks", [3, "x", print, [3], [None], [lambda s: s.x], [lambda s: 0.5]])
def test_callbacks_are_a_list_of_functions_that_say_whether_to_stop(callbacks):
    refused(Mine(), callbacks=callbacks)


@pytest.mark.parametrize("size", [np.full(3, 0.1), np.full((40, 1), 0.1)])
def test_a_schedule_of_arrays_is_refused(size):
    refused(Mine(), method=d3gd.DiDGD(step_size=lambda k: size))


@pytest.mark.parametrize("graphs", [3, "ring", GRAPH, [None], [GRAPH, 3], lambda k: 3, lambda k: [GRAPH]])
def test_graphs_in_turn_are_graphs(graphs):
    with pytest.raises(d3gd.D3GDError) as caught:
        run(Mine(), conditions=d3gd.Conditions(graphs=graphs, biased=True))
    assert "\n" not in str(caught.value)


def test_a_metric_may_return_a_list_and_have_a_target(tmp_path):
    metrics = {"mine": lambda s: [4.0 - s.k, 3.0 - s.k]}
    result = run(Mine(), metrics=metrics, target={"mine": 0.5}, out=tmp_path / "run")
    assert (result.status, result.metrics["mine"].tolist()) == ("target", [[4, 3], [2, 1], [0, -1]])
    assert np.array_equal(Result.load(tmp_path / "run").metrics["mine"], result.metrics["mine"])


def test_a_metric_may_return_one_buffer_again_and_again():
    buffer = np.empty(4)

    def reused(s):
        buffer[:] = s.k
        return buffer

    assert run(Mine(), metrics={"mine": reused}).metrics["mine"][:, 0].tolist() == [0, 2, 4, 6]

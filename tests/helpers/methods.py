"""Every method of the catalogue in all its variants, for the tests that hold for all of them."""

from contextlib import suppress
from dataclasses import fields

from d3gd.algorithms import catalogue
from d3gd.errors import SettingsError

SWITCHED = {"momentum": 0.3, "rounds": 2, "weight_decay": 0.1}


def every_method(step_size):
    """Instances by name: all choices among words; for the first and the last of them, also whatever can be switched.

    "auto" is left out: it stands for one of the other choices.
    """
    made = {}
    for name, method in catalogue.methods().items():
        words = [choice for choice in catalogue.variants(method) if "auto" not in choice.values()]
        for choice in words:
            made[" ".join([name, *choice.values()])] = method(step_size=step_size, **choice)
        for field in fields(method):
            if field.type is bool or (field.name in SWITCHED and field.default is not None):
                switched = SWITCHED.get(field.name, not field.default)
                for choice in (words[0], words[-1]):
                    label = " ".join([name, *choice.values(), f"{field.name}={switched}"])
                    with suppress(SettingsError):  # choices that exclude each other
                        made[label] = method(step_size=step_size, **choice, **{field.name: switched})
    return made


def advance(algorithm, net, problem, s, k):
    """Return the state after one iteration, taken as the engine takes it."""

    def gradient(x=None, *, draw="new"):
        return net.precise(problem.gradients(algorithm.point(s) if x is None else x, k))

    return algorithm.step(net, gradient, s, k)

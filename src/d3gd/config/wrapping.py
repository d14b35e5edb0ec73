"""What an ``[algorithm]`` table may ask for besides the settings of its method: local steps, an optimizer."""

from typing import Any

from d3gd.algorithms.base import Algorithm
from d3gd.algorithms.local import Local
from d3gd.algorithms.optimizers import AdamW, Momentum
from d3gd.config.schema import Keys, Table, checked, keys_of, prefixed, unknown
from d3gd.errors import SettingsError
from d3gd.validation import shown

OPTIMIZERS = {"Momentum": Momentum, "AdamW": AdamW}
_EXAMPLE = '{kind = "Momentum", momentum = 0.9}'
KEYS: Keys = {name: keys_of(Local)[name] for name in ("every", "outer")}


def separated(table: Table, where: str) -> tuple[Table, dict[str, Any]]:
    """Return the settings of the method, and those of what is around it, checked."""
    around = checked({key: value for key, value in table.items() if key in KEYS}, KEYS, where)
    if "optimizer" in table:
        around["optimizer"] = _optimizer(table["optimizer"], f"{where} optimizer:")
    return {key: value for key, value in table.items() if key not in {*KEYS, "optimizer"}}, around


def wrapped(method: Algorithm[Any], around: Table) -> Algorithm[Any]:
    """Return a method with what a table asks for around it."""
    local = {key: value for key, value in around.items() if key in ("every", "outer", "optimizer")}
    return Local(method=method, **local) if local else method


def _optimizer(table: Any, where: str) -> Any:
    """Return the optimizer that a table describes."""
    if not isinstance(table, dict) or "kind" not in table:
        raise SettingsError(f"{where} found {shown(table)}; write optimizer = {_EXAMPLE}")
    if table["kind"] not in OPTIMIZERS:
        raise unknown(f"{where} kind", str(table["kind"]), list(OPTIMIZERS))
    maker: Any = OPTIMIZERS[table["kind"]]
    rest = {key: value for key, value in table.items() if key != "kind"}
    with prefixed(where):
        return maker(**checked(rest, keys_of(maker), where))

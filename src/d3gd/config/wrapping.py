"""What an ``[algorithm]`` table may ask for besides its method: local steps, an optimizer, compressed messages."""

from typing import Any

from d3gd.algorithms.base import Algorithm
from d3gd.algorithms.compressed import Compressed
from d3gd.algorithms.local import Local
from d3gd.algorithms.optimizers import AdamW, Momentum
from d3gd.config.schema import Keys, Table, checked, keys_of, prefixed, unknown
from d3gd.errors import SettingsError
from d3gd.validation import shown

OPTIMIZERS = {"Momentum": Momentum, "AdamW": AdamW}
_EXAMPLE = '{kind = "Momentum", momentum = 0.9}'
LOCAL: Keys = {name: keys_of(Local)[name] for name in ("every", "steered", "outer")}
SMALL: Keys = {"compress": (str, False), "damping": keys_of(Compressed)["damping"]}  # a compressor by name only
KEYS: Keys = LOCAL | SMALL


def separated(table: Table, where: str) -> tuple[Table, dict[str, Any]]:
    """Return the settings of the method, and those of what is around it, checked."""
    around = checked({key: value for key, value in table.items() if key in KEYS}, KEYS, where)
    if "optimizer" in table:
        around["optimizer"] = _optimizer(table["optimizer"], f"{where} optimizer:")
    return {key: value for key, value in table.items() if key not in {*KEYS, "optimizer"}}, around


def wrapped(method: Algorithm[Any], around: Table) -> Algorithm[Any]:
    """Return a method with what a table asks for around it."""
    local = {key: value for key, value in around.items() if key in (*LOCAL, "optimizer")}
    method = Local(method=method, **local) if local else method
    if "damping" in around and "compress" not in around:
        raise SettingsError('damping is of compressed messages; add compress = "topk:0.01", or drop it')
    small = {key: value for key, value in around.items() if key in SMALL}
    return Compressed(method=method, **small) if small else method


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

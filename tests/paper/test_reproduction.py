"""The paper's figures over three seeds, and the arithmetic of the verdicts."""

import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from d3gd.errors import RecordError, SettingsError
from d3gd.reproduce import figure1, figure2
from d3gd.reproduce.claims import (
    Claim,
    Measurement,
    at_least,
    has_sign,
    near_zero,
    reduction,
    speed_up,
)
from d3gd.reproduce.report import print_claims, reproduce
from d3gd.reproduce.trial import DECENTRALIZED, DIDGD, GLOBAL, REFINED

SEEDS = 3
K = np.arange(0, 1001, 2)

# One worker runs all of these: they share real trials of both figures.
pytestmark = pytest.mark.xdist_group("reproduction")


class Reproduction(NamedTuple):
    folder: Path
    claims: list[Claim]


@pytest.fixture(scope="session")
def reproduction(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduction") / "results"
    return Reproduction(folder, reproduce("all", seeds=SEEDS, out=folder))


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# --- the paper's two figures ---


@pytest.mark.parametrize("rule", REFINED)
def test_disagreement_ends_a_fifth_below_didgd(reproduction, rule):
    last = {
        (row["algorithm"], int(row["seed"])): float(row["disagreement"])
        for row in rows_of(reproduction.folder / "fig1_curves.csv")
        if row["iteration"] == "1000"
    }
    assert len(last) == 3 * SEEDS
    assert np.median([1 - last[rule, seed] / last[DIDGD, seed] for seed in range(SEEDS)]) >= 0.2


@pytest.mark.parametrize("rule", REFINED)
@pytest.mark.parametrize("edge", ["AC", "CD", "BA"])
def test_the_three_edges_rise(reproduction, rule, edge):
    rises = [
        float(row["final"]) > float(row["initial"])
        for row in rows_of(reproduction.folder / "fig2_weights.csv")
        if row["algorithm"] == rule and row["source"] + row["target"] == edge
    ]
    assert len(rises) == SEEDS
    assert sum(rises) >= 0.8 * SEEDS


def test_weights_start_as_metropolis_and_stay_row_stochastic(reproduction):
    rows = rows_of(reproduction.folder / "fig2_weights.csv")
    initial = {row["source"] + row["target"]: float(row["initial"]) for row in rows}
    third, half = pytest.approx(1 / 3), pytest.approx(1 / 2)
    expected = {"AC": half, "CD": half, "DB": third, "BA": third, "AB": third}
    assert initial == expected | {"AA": pytest.approx(2 / 3), "BB": third, "CC": half, "DD": half}
    sums = defaultdict(float)
    for row in rows:
        sums[row["seed"], row["algorithm"], row["target"]] += float(row["final"])
    assert len(sums) == SEEDS * 2 * 4
    assert list(sums.values()) == pytest.approx([1.0] * len(sums))


def test_all_files_are_there_and_whole(reproduction):
    assert sorted(path.name for path in reproduction.folder.iterdir()) == [
        "claims.json",
        "fig1.pdf",
        "fig1.png",
        "fig1_curves.csv",
        "fig2.pdf",
        "fig2.png",
        "fig2_weights.csv",
        "settings.json",
    ]
    for name in ("fig1.png", "fig2.png"):
        content = (reproduction.folder / name).read_bytes()
        assert content.startswith(b"\x89PNG")
        assert content[-8:-4] == b"IEND"
        assert int.from_bytes(content[16:20]) >= 1500  # pixels across: enough for paper
    curves = rows_of(reproduction.folder / "fig1_curves.csv")
    assert list(curves[0]) == [
        "seed",
        "algorithm",
        "iteration",
        "stationarity",
        "disagreement",
        "n_min_pi",
        "perron_error",
    ]
    assert len(curves) == SEEDS * 3 * len(K)
    assert all(0 < float(row["n_min_pi"]) <= 1 for row in curves)


def test_claims_json_says_what_was_measured(reproduction):
    content = json.loads((reproduction.folder / "claims.json").read_text())
    assert content["seeds"] == list(range(SEEDS))
    assert content["versions"]
    assert content["claims"] == json.loads(json.dumps([claim.as_dict() for claim in reproduction.claims]))
    for claim in content["claims"]:
        assert set(claim) == {"claim", "where", "paper", "measure", "rule", "ours", "verdict"}
        assert claim["verdict"] in ("reproduced", "partly", "not reproduced")
        assert all(claim.values())
        for ours in claim["ours"]:
            assert len(ours["values"]) == SEEDS
            quartiles = [ours["lower_quartile"], ours["median"], ours["upper_quartile"]]
            assert quartiles == pytest.approx(np.quantile(ours["values"], [0.25, 0.5, 0.75]))


def test_the_table_has_every_claim(reproduction, capsys):
    print_claims(reproduction.claims, SEEDS)
    printed = capsys.readouterr().out
    assert len({claim.claim for claim in reproduction.claims}) == len(reproduction.claims) == 17
    assert "abstract" in printed
    for claim in reproduction.claims:
        for measurement in claim.ours:
            assert str(measurement) in printed
    printed_verdicts = [printed.count(f"│ {verdict} ") for verdict in ("reproduced", "partly", "not reproduced")]
    verdicts = [claim.verdict for claim in reproduction.claims]
    assert printed_verdicts == [verdicts.count(verdict) for verdict in ("reproduced", "partly", "not reproduced")]


def test_a_seed_gives_the_same_trial_alone_as_in_the_whole(reproduction):
    again = figure2.trial(2)
    stored = [
        float(row["final"])
        for row in rows_of(reproduction.folder / "fig2_weights.csv")
        if (row["seed"], row["algorithm"]) == ("2", DECENTRALIZED)
    ]
    assert again.final[DECENTRALIZED].tolist() == stored


def test_one_figure_alone_says_what_it_does_and_where_its_files_are(tmp_path, capsys):
    found = reproduce("fig2", seeds=1, out=tmp_path, jobs=1, progress=True)
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {"claims.json", "fig2.pdf", "fig2.png", "fig2_weights.csv", "settings.json"}
    printed = capsys.readouterr()
    assert {line for line in printed.out.splitlines() if line.startswith("wrote")} == {
        f"wrote {tmp_path / name}" for name in files
    }
    stages = dict.fromkeys(line.partition(":")[0] for line in printed.err.splitlines())
    assert list(stages) == ["Trials", "Figures"]
    assert all("Fig. 2" in claim.where for claim in found)
    with pytest.raises(RecordError, match="holds other figures"):
        reproduce("fig1", seeds=1, out=tmp_path, jobs=1)


# --- the experiments' settings ---


def test_figure_2_is_the_papers_graph():
    graph = figure2.network()
    assert {"".join(link) for link in graph.to_networkx().edges} == {"AC", "CD", "DB", "BA", "AB"}


def test_heterogeneity_is_the_distance_between_class_frequencies():
    trial = figure2.trial(0, iterations=1)
    by_edge = dict(zip(figure2.names(trial), trial.heterogeneity, strict=True))
    assert by_edge["AA"] == 0
    assert by_edge["AB"] == by_edge["BA"]
    assert min(by_edge["AB"], by_edge["AC"]) > max(by_edge["CD"], by_edge["DB"])


def test_seeds_draw_graph_and_data():
    one, other = figure1.trial(0, iterations=1), figure1.trial(1, iterations=1)
    assert one.sources.tolist() != other.sources.tolist()
    assert one.heterogeneity.tolist() != other.heterogeneity.tolist()


# --- the arithmetic ---


@pytest.mark.parametrize("rate", [0.006, 0.01, 0.0147, 0.05])
def test_speed_up_of_exponentials(rate):
    # exp(-r k) is at exp(-0.01 T/2) when k = (0.01 / r) T/2.
    assert speed_up(K, np.exp(-rate * K), np.exp(-0.01 * K)) == pytest.approx(1 - 0.01 / rate)


def test_speed_up_is_free_of_scale_and_recording():
    curve, baseline = np.exp(-0.013 * K), np.exp(-0.01 * K)
    assert speed_up(K, 7 * curve, 7 * baseline) == pytest.approx(speed_up(K, curve, baseline))
    assert speed_up(K[::25], curve[::25], baseline[::25]) == pytest.approx(speed_up(K, curve, baseline))


def test_speed_up_waits_until_the_curve_stays_below():
    baseline = np.exp(-0.01 * K)
    rising_first = np.where(K < 10, 0.0, np.exp(-0.02 * K))
    assert speed_up(K, rising_first, baseline) == pytest.approx(0.5)


def test_speed_up_at_its_ends():
    baseline = np.exp(-0.01 * K)
    assert speed_up(K, np.ones_like(baseline), baseline) == -1
    assert speed_up(K, np.full_like(baseline, np.inf), baseline) == -1
    assert speed_up(K, np.zeros_like(baseline), baseline) == 1
    assert speed_up(K, np.where(K < 250, 1.0, 0.0), baseline) == pytest.approx(0.5)


def test_reduction_of_exponentials():
    assert reduction(np.exp(-0.011 * K), np.exp(-0.01 * K)) == pytest.approx(1 - np.exp(-1))
    assert reduction(2 * np.exp(-0.01 * K), np.exp(-0.01 * K)) == pytest.approx(-1)


@pytest.mark.parametrize(
    ("rule", "values", "verdict"),
    [
        (at_least(0.3), [0.3, 0.31, 0.5], "reproduced"),
        (at_least(0.3), [0.1, 0.2, 0.9], "partly"),
        (at_least(0.3), [-0.5, -0.4, 0.35, 0.4, 0.4], "partly"),
        (at_least(0.3), [-0.1, -0.1, 0.2], "not reproduced"),
        (has_sign(1), [1, 1, 1, 1, -1], "reproduced"),
        (has_sign(1), [1, 1, 1, -1, -1], "partly"),
        (has_sign(1), [1, 1, -1, -1], "not reproduced"),
        (has_sign(1), [0, 0, 0, 0], "not reproduced"),
        (has_sign(-1), [-1, -1, -1, -1, 1], "reproduced"),
        (near_zero(0.1), [-0.05, 0.0, 0.09], "reproduced"),
        (near_zero(0.1), [-0.5, 0.0, 0.09], "partly"),
        (near_zero(0.1), [-0.5, -0.4, -0.3], "not reproduced"),
    ],
)
def test_rules(rule, values, verdict):
    assert rule.judge(np.array(values, dtype=float)) == verdict


@pytest.mark.parametrize(
    ("verdicts", "together"),
    [
        (["reproduced", "reproduced"], "reproduced"),
        (["not reproduced", "not reproduced"], "not reproduced"),
        (["reproduced", "not reproduced"], "partly"),
        (["partly", "not reproduced"], "partly"),
        (["partly"], "partly"),
    ],
)
def test_a_claim_with_several_measurements(verdicts, together):
    ours = tuple(Measurement("x", (0.0,), verdict) for verdict in verdicts)
    assert Claim("c", "w", "p", "m", "r", ours).verdict == together


def test_verdicts_follow_from_the_curves():
    """Trials whose every D3GD curve is twice as fast make Figure 1's speed-up claims come out as reproduced."""
    trial = figure1.trial(0, iterations=4)
    slow, fast = (
        {m: np.exp(-rate * K) for m in ("stationarity", "disagreement", "perron_error")} for rate in (0.01, 0.02)
    )

    def verdicts(refined):
        made = trial.__class__(**{**vars(trial), "iterations": K, "curves": {DIDGD: slow, **refined}})
        return [claim.verdict for claim in figure1.claims([made])[:8]]

    assert verdicts({GLOBAL: fast, DECENTRALIZED: fast}) == ["reproduced"] * 8
    assert verdicts({GLOBAL: slow, DECENTRALIZED: slow}) == ["not reproduced"] * 5 + ["reproduced"] * 2 + [
        "not reproduced"
    ]
    assert verdicts({GLOBAL: fast, DECENTRALIZED: slow})[1:7] == ["partly"] * 4 + ["not reproduced"] * 2


# --- bad input ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"which": "fig3"}, "choose fig1, fig2 or all"),
        ({"which": "all", "seeds": 0}, "seeds = 0"),
        ({"which": "all", "jobs": 0}, "jobs = 0"),
    ],
)
def test_settings_are_checked(tmp_path, arguments, message):
    with pytest.raises(SettingsError, match=message):
        reproduce(out=tmp_path, **arguments)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_told_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("d3gd.reproduce.report._run_trials", lambda *_: pytest.fail("worked in vain"))
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match="cannot be created"):
        reproduce("all", out=tmp_path / "file")


@pytest.mark.parametrize("name", ["claims.json", "settings.json", "fig1.png"])
def test_a_folder_with_other_files_is_left_alone(tmp_path, name):
    (tmp_path / name).write_text("{}")
    with pytest.raises(RecordError, match=name):
        reproduce("all", out=tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["{}"]


def test_readings_of_what_the_paper_leaves_open_have_their_rows(reproduction):
    """With labels of both signs disagreement falls as claimed; with a random start the decentralized rule fails."""
    claims = json.loads((reproduction.folder / "claims.json").read_text())["claims"]
    start, labels = ([m["values"] for m in claim["ours"]] for claim in claims if claim["claim"].startswith("Read with"))
    assert all(np.median(values) >= 0.3 for values in labels[2:])
    assert max(*start[1], *start[3]) < 0

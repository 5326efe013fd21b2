"""Every value of the reference, through the command line where it has a NAME, else through the library."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from metric_reference import RANK_SETS, REFERENCE, SCORE_SETS, arrays, number

from given_files import REFERENCE as REFERENCE_FILES
from given_files import given_folder, sources
from voxveil.cli.main import main
from voxveil.metrics import betabinomial, disclosure, eer, legal, linkability, ranks, zebra
from voxveil.metrics.data import CountTable, RankSet, UndefinedMetricError
from voxveil.metrics.eps_gauss import eps_max_gauss, fit_gauss
from voxveil.metrics.eps_t import fit_t
from voxveil.metrics.pav import pav, smooth

# NAME -> (field, scale, absolute tolerance, relative tolerance)
TRIAL_NAMES = {
    "eer": ("eer_roc", 100, 1e-10, 0),
    "eer_rocch": ("eer_rocch", 100, 1e-7, 0),
    "cllr": ("cllr_raw_bits", 1, 1e-9, 0),
    "cllr_min": ("min_cllr_bits", 1, 1e-9, 0),
    "linkability": ("linkability_dsys_sum", 1, 1e-9, 0),
    "linkability_vpc": ("linkability_dsys_trapezoid", 1, 1e-9, 0),
    "zebra_expected": ("dece_bits", 1, 1e-9, 0),
    "zebra_worst_case": ("max_abs_llr_laplace_zebra_nat", 1, 1e-9, 0),
    "eps_max_pav": ("max_abs_llr_laplace_zebra_nat", 1, 1e-9, 0),
    "eps_max_gauss": ("eps_max_gauss_nat", 1, 0, 1e-9),
    "eps_max_t": ("eps_max_t_nat", 1, 0, 5e-3),
}
# Undefined in the reference, defined by the rule for few targets and for constant scores.
SUPERSEDED = {
    "linkability": {"constant": 0.0, "tiny_ex1": 1.0, "tiny_ex2": 1.0},
}
RANK_NAMES = {
    "rank_mean": ("mean_disclosure_bits", 1),
    "rank_max": ("max_disclosure_bits", 1),
    "identification_rate": ("identification_rate", 100),
    "rank_spread": ("rank_spread_fraction", 1),
}
ALL_TRIALS = {
    **{name: entry["expected"] for name, entry in SCORE_SETS.items()},
    "rank40": RANK_SETS["rank40"]["pair_scores"]["expected"],
}


def command(tmp_path, name, *options):
    path, out = tmp_path / f"{name}.npz", tmp_path / f"{name}.json"
    np.savez(path, **arrays(name))
    assert main(["evaluate", "--scores", str(path), "--json", str(out), "--replicates", "0", *options]) == 0
    return json.loads(out.read_text())


@pytest.mark.parametrize("name", ALL_TRIALS)
def test_trial_metrics_through_the_command_line(name, tmp_path, capsys):
    expected = ALL_TRIALS[name]
    result = command(tmp_path, name, "--scores-are-llr")
    assert result["trials"]["target"] == expected["n_target"]
    assert result["trials"]["nontarget"] == expected["n_nontarget"]
    for metric, (field, scale, absolute, relative) in TRIAL_NAMES.items():
        entry = result["metrics"][metric]
        want = SUPERSEDED.get(metric, {}).get(name, expected[field])
        if want is None:
            assert entry["value"] is None and entry["note"], (metric, entry)
        else:
            assert entry["value"] == pytest.approx(scale * want, abs=absolute, rel=relative), metric
    worst = result["metrics"]["zebra_worst_case"]
    assert worst["log10"] == pytest.approx(expected["max_abs_llr_laplace_zebra_log10"], abs=1e-9)
    assert worst["tag"] == expected["zebra_tag"]
    linked, unlinked = result["metrics"]["linkability"]["value"], result["metrics"]["unlinkability"]["value"]
    assert unlinked is None if linked is None else unlinked == pytest.approx(1 - linked)
    assert "warning" in capsys.readouterr().out or not result["warnings"]


@pytest.mark.parametrize("rule", ["pure-bins", "end-bins", "all-bins"])
@pytest.mark.parametrize("name", ALL_TRIALS)
def test_bin_rules_through_the_command_line(name, rule, tmp_path):
    field = f"max_abs_llr_laplace_binrule_{rule.replace('-', '_')}_nat"
    result = command(tmp_path, name, "--pav-rule", rule)
    assert result["metrics"]["eps_max_pav"]["value"] == pytest.approx(ALL_TRIALS[name][field], abs=1e-9)
    assert rule in result["metrics"]["eps_max_pav"]["estimator"]


def test_rank_metrics_through_the_command_line(tmp_path):
    expected = RANK_SETS["rank40"]["expected"]
    metrics = command(tmp_path, "rank40")["metrics"]
    for suffix, block, relative in (
        ("", expected["optimistic"], 0),
        ("_bb", expected["optimistic"]["beta_binomial"], 1e-4),
    ):
        for metric, (field, scale) in RANK_NAMES.items():
            assert metrics[metric + suffix]["value"] == pytest.approx(
                scale * block[field], abs=1e-9, rel=relative
            )
    fitted = expected["optimistic"]["beta_binomial"]
    assert metrics["eps_max_rank"]["value"] == pytest.approx(fitted["eps_max_nat"], rel=1e-3)
    assert metrics["eps_max_rank_positive"]["value"] == pytest.approx(
        fitted["eps_max_positive_nat"], rel=1e-3
    )
    assert metrics["eps_max_rank_empirical"]["value"] is None
    assert metrics["eps_max_rank_empirical"]["note"].startswith("unbounded: 6 of 40 ranks never occurred")
    assert metrics["identification_rate"]["strict"] == pytest.approx(
        100 * expected["identification_rate_strict"]
    )
    assert metrics["singling_out"]["value"] == pytest.approx(expected["legal_singling_out_all_n"], abs=1e-12)
    assert metrics["linkability_legal"]["value"] == pytest.approx(
        expected["legal_linkability_exact"]["40"], abs=1e-9
    )


@pytest.mark.parametrize("name", ALL_TRIALS)
def test_bins_and_fits(name):
    expected = ALL_TRIALS[name]
    data = arrays(name)
    if "scores" in data:
        same = data["input_labels"][:, None] == data["reference_labels"][None]
        data = {"target": data["scores"][same], "nontarget": data["scores"][~same]}
    table = CountTable.from_scores(data["target"], data["nontarget"])
    plain = pav(table)
    smoothed = smooth(plain)
    for bins, rows, extra in (
        (plain, expected["pav_bins"], ""),
        (smoothed, expected["laplace_zebra_bins"], "_smoothed"),
    ):
        assert [*bins.low] == [r["score_lo"] for r in rows]
        assert [*bins.high] == [r["score_hi"] for r in rows]
        assert [*bins.target] == [r["n_target" + extra] for r in rows]
        assert [*bins.nontarget] == [r["n_nontarget" + extra] for r in rows]
        assert bins.llr == pytest.approx([number(r["llr_nat"]) for r in rows], abs=1e-9)
    assert plain.max_abs_llr() == pytest.approx(number(expected["pav_max_abs_llr_nat"]), abs=1e-9)
    for rule in ("pure", "end", "all"):
        rises = bool(np.all(np.diff(smooth(plain, f"{rule}-bins").llr) >= 0))
        assert rises == expected[f"laplace_binrule_{rule}_bins_monotone"]
    assert pytest.approx(expected["dece_max_bits"], abs=1e-12) == zebra.EXPECTED_DISCLOSURE_MAX
    if expected["unlinkability_trapezoid"] is not None:
        assert 1 - linkability.linkability_vpc(table) == pytest.approx(
            expected["unlinkability_trapezoid"], abs=1e-9
        )
    assert eer.eer_interpolated(table) == pytest.approx(expected["eer_roc_interpolated"], abs=1e-12)
    if expected["gauss_fit"] is None:
        with pytest.raises(UndefinedMetricError, match="no variance"):
            fit_gauss(table)
        with pytest.raises(UndefinedMetricError, match="distinct values"):
            fit_t(table)
        return
    want, got = expected["gauss_fit"], fit_gauss(table)
    moments = [got.mean_target, got.sd_target, got.mean_nontarget, got.sd_nontarget]
    assert moments == pytest.approx([want["mu_t"], want["sd_t"], want["mu_n"], want["sd_n"]], rel=1e-9)
    assert got.llr(np.array([want["score_at_max"]]))[0] == pytest.approx(want["llr_at_max"], rel=1e-9)
    unbiased = eps_max_gauss(table, fit_gauss(table, ddof=1))
    assert unbiased == pytest.approx(expected["eps_max_gauss_nat_ddof1"], rel=1e-9)
    fits = fit_t(table)
    for side in ("target", "nontarget"):
        fit, best = getattr(fits, side), expected["t_fit"][side]
        assert fit.nll <= best["nll"] + 1e-3
        assert fit.nll >= best["nll"] - 1e-3, "better than the reference: look at it"
        assert fit.df >= 1


def test_ranks_and_legal_metrics():
    expected = RANK_SETS["rank40"]["expected"]
    data = arrays("rank40")
    given = RankSet.from_labels(data["scores"], data["input_labels"], data["reference_labels"])
    found = ranks.rank_inputs(given)
    assert found.best.tolist() == expected["rank_optimistic"]
    assert ((found.best + found.worst) / 2).tolist() == expected["rank_mid"]
    assert found.n_tied == expected["n_inputs_with_tie"]
    assert found.best.mean() == pytest.approx(expected["mean_rank_optimistic"], abs=1e-12)
    histogram = found.histogram()
    block = expected["optimistic"]
    assert histogram.tolist() == block["rank_histogram"]
    gamma = histogram / histogram.sum()
    assert gamma == pytest.approx(block["gamma"], abs=1e-12)
    assert round(40 * float(disclosure.rank_spread(gamma))) == block["rank_spread_count"]
    assert disclosure.rank_llr(gamma) == pytest.approx([number(x) for x in block["rank_llr_nat"]], abs=1e-9)
    assert disclosure.rank_llr(gamma).max() == pytest.approx(
        block["eps_max_positive_empirical_nat"], abs=1e-9
    )
    fit, want = betabinomial.fit_betabinomial(histogram[None]), block["beta_binomial"]
    assert (fit.alpha[0], fit.beta[0]) == pytest.approx((want["alpha"], want["beta"]), rel=1e-4)
    assert fit.gamma[0] == pytest.approx(want["gamma"], rel=1e-4)
    assert -(histogram @ np.log(fit.gamma[0])) == pytest.approx(want["nll"], rel=1e-9)
    llr = disclosure.rank_llr(fit.gamma)[0]
    assert llr == pytest.approx([number(x) for x in want["rank_llr_nat"]], rel=1e-3)
    assert 1 + int(np.argmax(np.abs(llr))) == want["eps_max_rank"]
    for size, value in expected["legal_linkability_exact"].items():
        assert legal.linkability_legal(found, int(size)) == pytest.approx(value, abs=1e-9)
    assert legal.singling_out_outcomes(given).tolist() == expected["legal_singling_out_outcomes"]
    assert pytest.approx(expected["trivial_singling_out"], abs=1e-12) == legal.TRIVIAL_SINGLING_OUT


def test_two_million_scores():
    recipe, data = REFERENCE["recipes"]["big"], arrays("big")
    for name in ("target", "nontarget"):
        assert (
            hashlib.sha256(data[name].astype("<f8").tobytes()).hexdigest() == recipe[f"sha256_{name}_le_f8"]
        )
    from voxveil.metrics.suite import SuiteOptions, trial_values

    table = CountTable.from_scores(data["target"], data["nontarget"])
    values, bins = trial_values(table, SuiteOptions(scores_are_llr=True))
    expected = recipe["expected"]
    assert bins.llr.size == expected["pav_n_bins"]
    for metric, (field, scale, absolute, relative) in TRIAL_NAMES.items():
        if field in expected:
            assert values.value[metric] == pytest.approx(
                scale * expected[field], abs=absolute, rel=relative
            ), metric


def digest(parts: dict[str, bytes]) -> str:
    return hashlib.sha256(b"".join(name.encode() + parts[name] for name in sorted(parts))).hexdigest()


def digests(entry: dict, data: dict[str, np.ndarray]) -> dict[str, str]:
    """Return SHA-256 of a set's values and of its arrays, whatever the machine's order of bytes."""
    values = {"": entry["expected"], "pair_scores": entry.get("pair_scores", {}).get("expected")}
    written = {name: json.dumps(value, sort_keys=True).encode() for name, value in values.items()}
    drawn = {key: array.astype(array.dtype.newbyteorder("<")).tobytes() for key, array in data.items()}
    return {"values": digest(written), "arrays": digest(drawn)}


@pytest.mark.parametrize("origin", ["digests", *sources(REFERENCE_FILES, "metrics")[1:]])
@pytest.mark.parametrize("name", [*SCORE_SETS, *RANK_SETS])
def test_recipes_and_values_are_those_of_the_original_files(name: str, origin: str) -> None:
    """By their digests; where the original files are there, these digests are held against them."""
    kind = "score_sets" if name in SCORE_SETS else "rank_sets"
    if origin == "digests":
        entry, data = REFERENCE[kind][name], arrays(name)
    else:
        folder = given_folder(REFERENCE_FILES, "metrics")
        assert folder is not None
        entry = json.loads((folder / "expected.json").read_text())[kind][name]
        with np.load(folder / f"{name}.npz") as stored:
            data = {key: stored[key] for key in stored.files}
    assert digests(entry, data) == REFERENCE["originals_sha256"][name]

"""Slow, literal versions of the metrics: definitions written down, to hold the fast code against."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
from scipy import integrate, optimize, stats
from scipy.special import betaln, digamma, gammaln


def pav_blocks(target, nontarget):
    """Pool adjacent violators on a list of (low, high, targets, nontargets), exactly."""
    values = sorted(set(target) | set(nontarget))
    blocks = [[v, v, list(target).count(v), list(nontarget).count(v)] for v in values]
    return pool(blocks)


def pool(blocks):
    blocks = [list(b) for b in blocks]
    i = 0
    while i + 1 < len(blocks):
        a, b = blocks[i], blocks[i + 1]
        if Fraction(a[2], a[2] + a[3]) >= Fraction(b[2], b[2] + b[3]):
            blocks[i : i + 2] = [[a[0], b[1], a[2] + b[2], a[3] + b[3]]]
            i = max(i - 1, 0)
        else:
            i += 1
    return blocks


def zebra_blocks(target, nontarget):
    """ZEBRA's Laplace rule on single labels: [1, 0] below and above, PAV over everything again."""
    values = sorted(set(target) | set(nontarget))
    real = [[v, v, list(target).count(v), list(nontarget).count(v)] for v in values]
    low, high = -math.inf, math.inf
    labels = [[low, low, 1, 0], [low, low, 0, 1], *real, [high, high, 1, 0], [high, high, 0, 1]]
    kept = []
    for b in pool(labels):
        inside = [v for v in values if b[0] <= v <= b[1]]
        if inside:
            kept.append([inside[0], inside[-1], b[2], b[3]])
    return kept


def block_llr(block, n_target, n_nontarget):
    t, f = block[2], block[3]
    if t == 0:
        return -math.inf
    if f == 0:
        return math.inf
    return math.log(t / f) - math.log(n_target / n_nontarget)


def operating_points(target, nontarget):
    """(Pmiss, Pfa) with the threshold below, between and above all distinct scores."""
    thresholds = [-math.inf, *sorted(set(target) | set(nontarget))]
    return [
        (sum(s <= t for s in target) / len(target), sum(s > t for s in nontarget) / len(nontarget))
        for t in thresholds
    ]


def eer(target, nontarget):
    points = operating_points(target, nontarget)
    return min(
        ((abs(m - f), i, (m + f) / 2) for i, (m, f) in enumerate(points)),
        key=lambda x: (round(x[0], 12), x[1]),
    )[2]


def eer_rocch(target, nontarget):
    """Lowest Pmiss = Pfa reachable by mixing two operating points."""
    points = operating_points(target, nontarget)
    best = min(max(m, f) for m, f in points)
    for (m1, f1), (m2, f2) in combinations(points, 2):
        gap1, gap2 = m1 - f1, m2 - f2
        if gap1 * gap2 < 0:
            share = gap1 / (gap1 - gap2)
            best = min(best, m1 + share * (m2 - m1))
    return best


def tpr_at_fpr(target, nontarget, rate):
    """Try every score as threshold: the largest share of targets with few enough false positives."""
    best = 0.0
    for threshold in {*target, *nontarget}:
        false = sum(score >= threshold for score in nontarget)
        if false <= rate * len(nontarget) + 1e-9:
            best = max(best, sum(score >= threshold for score in target) / len(target))
    return best


def cllr(target_llr, nontarget_llr):
    miss = sum(math.log2(1 + math.exp(-x)) if x > -700 else math.inf for x in target_llr) / len(target_llr)
    false = sum(math.log2(1 + math.exp(x)) if x < 700 else math.inf for x in nontarget_llr) / len(
        nontarget_llr
    )
    return (miss + false) / 2


def score_llrs(target, nontarget):
    """The unsmoothed PAV LLR of every score."""
    blocks = pav_blocks(target, nontarget)

    def of(score):
        block = next(b for b in blocks if b[0] <= score <= b[1])
        return block_llr(block, len(target), len(nontarget))

    return [of(s) for s in target], [of(s) for s in nontarget]


def expected_disclosure(target, nontarget):
    """D_ECE by quadrature over the prior."""
    t, n = score_llrs(target, nontarget)

    def ece(prior, t_llr, n_llr):
        odds = prior / (1 - prior)
        miss = np.mean([np.log2(1 + math.exp(-x) / odds) if x > -math.inf else math.inf for x in t_llr])
        false = np.mean([np.log2(1 + math.exp(x) * odds) if x < math.inf else math.inf for x in n_llr])
        return prior * miss + (1 - prior) * false

    zeros = [0.0] * len(t), [0.0] * len(n)
    area, _ = integrate.quad(
        lambda p: ece(p, *zeros) - ece(p, t, n), 0, 1, epsabs=1e-12, epsrel=1e-12, limit=200
    )
    return area


def linkability(target, nontarget, n_bins, trapezoid=False):
    edges = np.linspace(min(*target, *nontarget), max(*target, *nontarget), n_bins + 1)
    t, _ = np.histogram(target, edges)
    n, _ = np.histogram(nontarget, edges)
    total = []
    for a, b in zip(t / len(target), n / len(nontarget)):
        if a == 0:
            total.append(0.0)
        elif b == 0:
            total.append(a)
        else:
            total.append(a * max(0.0, (a / b - 1) / (a / b + 1)))
    if not trapezoid:
        return sum(total)
    width = edges[1] - edges[0]
    density = [x / width for x in total]
    return sum((a + b) / 2 * width for a, b in zip(density, density[1:]))


def eps_max_gauss(target, nontarget):
    t, n = stats.norm(np.mean(target), np.std(target)), stats.norm(np.mean(nontarget), np.std(nontarget))
    return max(abs(t.logpdf(s) - n.logpdf(s)) for s in [*target, *nontarget])


def t_nll(values, df, loc, scale):
    z2 = ((np.asarray(values) - loc) / scale) ** 2
    if math.isinf(df):
        return float(np.sum(z2 / 2 + math.log(scale) + math.log(2 * math.pi) / 2))
    constant = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2 - math.log(scale)
    return float(np.sum((df + 1) / 2 * np.log1p(z2 / df) - constant))


def t_fit_nll(values):
    """Best t likelihood by Nelder-Mead from many starts, df in [1, 10000] or infinite."""
    values = np.asarray(values)
    best = t_nll(values, math.inf, values.mean(), values.std())
    unit = np.subtract(*np.percentile(values, [75, 25])) / 1.35
    for df, scale in ((1.2, 1.0), (3, 1.0), (10, 1.0), (50, 1.0), (1.0, 0.2), (1.0, 0.04)):
        found = optimize.minimize(
            lambda p: t_nll(
                values, min(max(p[0], 1.0), 1e4), np.median(values) + unit * p[1], unit * (abs(p[2]) + 1e-9)
            ),
            [df, 0.0, scale],
            method="Nelder-Mead",
            options={"maxiter": 1500, "xatol": 1e-8, "fatol": 1e-9},
        )
        best = min(best, found.fun)
    return best


def rank_weights(scores, own):
    """Tie-spread rank histogram, one input at a time."""
    n = len(scores[0])
    histogram = np.zeros(n)
    for row, j in zip(scores, own):
        higher = sum(s > row[j] for s in row)
        equal = sum(s == row[j] for s in row)
        for k in range(higher, higher + equal):
            histogram[k] += 1 / equal
    return histogram


def mean_bits(gamma):
    return sum(g * math.log2(g * len(gamma)) for g in gamma if g > 0)


def betabinomial_nll(histogram, alpha, beta):
    """Each rank's log probability as a product of rising factors, without special functions."""
    n = len(histogram) - 1
    total = 0.0
    for k, weight in enumerate(histogram):
        if weight:
            log_p = math.log(math.comb(n, k))
            log_p += sum(math.log(alpha + j) for j in range(k)) + sum(
                math.log(beta + j) for j in range(n - k)
            )
            log_p -= sum(math.log(alpha + beta + j) for j in range(n))
            total -= weight * log_p
    return total


def betabinomial_fit_nll(histogram):
    best = math.inf
    for start in ([0.0, 0.0], [-1.0, 1.0], [2.0, 2.0]):
        found = optimize.minimize(
            lambda p: betabinomial_nll(histogram, *np.exp(np.clip(p, -14, 14))),
            start,
            method="Nelder-Mead",
            options={"maxiter": 400, "xatol": 1e-6, "fatol": 1e-7},
        )
        best = min(best, found.fun)
    return best


def resample(scores, is_target, enrol, test, weights):
    """A bootstrap replicate with every trial written out as often as it weighs."""
    target, nontarget = [], []
    for s, same, e, t in zip(scores, is_target, enrol, test):
        times = weights[t] if same else weights[e] * weights[t]
        (target if same else nontarget).extend([s] * int(times))
    return target, nontarget


def asymptotic_identification(alpha, beta, sizes):
    """N^-alpha Gamma(alpha + beta) / Gamma(beta), the beta-binomial's gamma_1 for many speakers."""
    log_n = np.log(np.asarray(sizes, dtype=np.float64))
    return np.exp(gammaln(alpha + beta) - gammaln(beta) - alpha * log_n)


def disclosure_limit(alpha, beta):
    """KL(Beta(alpha, beta) || U(0, 1)) in bit, the mean disclosure among infinitely many."""
    both = digamma(alpha + beta)
    nats = -betaln(alpha, beta) + (alpha - 1) * (digamma(alpha) - both) + (beta - 1) * (digamma(beta) - both)
    return float(nats / np.log(2))

"""Golden values of the statistics: writes test/fixtures/intervals.json.

Run by hand: python reference/intervals.py. Needs scipy and numpy (versions are recorded in the output). Quantiles and
Wilson's intervals are scipy's. Bootstrap distributions of 16 values are exact, by convolution; the levels are
Hesterberg's (2015), by scipy's normal and t. A ratio's t interval is numpy's arithmetic.
"""

import json
import math
import pathlib

import numpy
import scipy
from scipy import stats

student = [[p, df, stats.t.ppf(p, df)] for p in (0.6, 0.975, 0.995, 0.9999) for df in (1, 2, 3, 7, 8, 29, 400)]
normal = [[z, stats.norm.cdf(z)] for z in (-8.5, -4.0, -2.5, -1.0, 0.0, 0.3, 1.96, 5.0)]
wilson = []
for k, n in [(0, 1), (0, 5), (1, 5), (5, 5), (7, 20), (50, 100), (99, 100), (1000, 1000)]:
    ci = stats.binomtest(k, n).proportion_ci(confidence_level=0.95, method="wilson")
    wilson.append([k, n, ci.low, ci.high])


def exact_bootstrap(values):
    """The means of all resamples, sorted, with their cumulative probabilities: an n-fold convolution on a grid of 1e-3."""
    n = len(values)
    grid = [round(1000 * v) for v in values]
    single = numpy.bincount(grid) / n
    total = numpy.ones(1)
    for _ in range(n):
        total = numpy.convolve(total, single)
    assert abs(total.sum() - 1) < 1e-12
    return numpy.arange(len(total)) / 1000 / n, numpy.cumsum(total)


bootstrap = []
rng = numpy.random.default_rng(20261130)
for confidence in (0.9, 0.95):
    values = [round(float(v), 3) for v in rng.gamma(4.0, 0.5, size=16)]
    n = len(values)
    tail = stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.ppf(0.5 + confidence / 2, n - 1))
    means, cumulative = exact_bootstrap(values)
    low = means[numpy.searchsorted(cumulative, tail)]
    high = means[numpy.searchsorted(cumulative, 1 - tail)]
    bootstrap.append({"values": values, "confidence": confidence, "tail": tail, "mean": float(numpy.mean(values)),
                      "low": float(low), "high": float(high), "standardError": float(numpy.std(values) / math.sqrt(n))})

few = []
for sums, counts in [([3.2, 5.1, 4.4], [2, 2, 2]), ([3.2, 5.1, 4.4, 9.0], [2, 3, 2, 5])]:
    s, c = numpy.array(sums), numpy.array(counts)
    mean = s.sum() / c.sum()
    if len(set(counts)) == 1:
        ci = stats.ttest_1samp(s / c, 0).confidence_interval(0.95)
        low, high = ci.low, ci.high
    else:
        residuals = (s - mean * c) / c.mean()
        half = stats.t.ppf(0.975, len(s) - 1) * math.sqrt((residuals**2).sum() / (len(s) - 1) / len(s))
        low, high = mean - half, mean + half
    few.append({"sums": sums, "counts": counts, "mean": mean, "low": low, "high": high})

out = {
    "generator": "reference/intervals.py",
    "versions": {"scipy": scipy.__version__, "numpy": numpy.__version__},
    "student": student, "normal": normal, "wilson": wilson, "bootstrap": bootstrap, "few": few,
}
path = pathlib.Path(__file__).parent.parent / "test/fixtures/intervals.json"
path.write_text(json.dumps(out) + "\n")

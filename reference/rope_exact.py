"""Rotary frequencies and tables in exact arithmetic: writes test/fixtures/rope-exact-*.json.

Nothing here calls transformers, torch or Longhand. The formulas are those of the papers, evaluated with mpmath at 50
decimal digits and rounded to float64 once, at the end; where a fixture follows a chain of float64 operations instead,
each operation is rounded correctly and the fixture says so. Keys are Longhand's (camelCase).

    python reference/rope_exact.py
"""

import itertools
import json
import math
import pathlib
import platform
import random

import mpmath
from mpmath import mp, mpf

mp.dps = 50
FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "test" / "fixtures"


# --- frequencies of every type ---------------------------------------------------------------------------------------

def magnitude(factor, mscale=1):
    """YaRN's m(s, k)."""
    return mpf(1) if factor <= 1 else mpf("0.1") * mscale * mp.log(factor) + 1


def ntk_base(base, factor, dim):
    return mpf(base) * mpf(factor) ** (mpf(dim) / (dim - 2))


def geometric(base, dim, round_exponent=lambda exponent: exponent):
    """base^(-2i/dim) for the dim/2 pairs of dim channels. round_exponent: to ask what a rounded 2i/dim would do."""
    return [mpf(base) ** -round_exponent(mpf(2 * i) / dim) for i in range(dim // 2)]


def yarn_range(base, dim, original, beta_fast, beta_slow, truncate):
    """The pair indices between which YaRN's code ramps: (raw low, raw high, low, high)."""

    def index(turns):
        return dim * mp.log(mpf(original) / (2 * mp.pi * turns)) / (2 * mp.log(mpf(base)))

    raw_low, raw_high = index(mpf(beta_fast)), index(mpf(beta_slow))
    low, high = (mp.floor(raw_low), mp.ceil(raw_high)) if truncate else (raw_low, raw_high)
    low, high = max(low, mpf(0)), min(high, mpf(dim - 1))
    if low == high:
        high += mpf("0.001")
    return raw_low, raw_high, low, high


def clamp01(x):
    return max(mpf(0), min(mpf(1), x))


def yarn(unscaled, base, factor, original, beta_fast, beta_slow, truncate):
    dim = 2 * len(unscaled)
    _, _, low, high = yarn_range(base, dim, original, beta_fast, beta_slow, truncate)
    out = []
    for i, w in enumerate(unscaled):
        ramp = clamp01((i - low) / (high - low))
        out.append(w * (1 - ramp) + w / factor * ramp)
    return out


def exact_rope(head_dim, max_positions, rope, length, **rounding):
    """(inverse frequencies, attention factor) of Longhand's rope parameters at one sequence length, as mpf."""
    kind, base = rope["ropeType"], mpf(rope["ropeTheta"])
    share = rope.get("partialRotaryFactor")
    share = 1.0 if share is None else share
    dim = int(head_dim * share)
    one = mpf(1)
    if kind == "default":
        return geometric(base, dim, **rounding), one
    if kind == "linear":
        return [w / mpf(rope["factor"]) for w in geometric(base, dim, **rounding)], one
    if kind == "ntk":
        return geometric(ntk_base(base, rope["factor"], dim), dim, **rounding), one
    if kind == "dynamic":
        if rope.get("alpha"):
            return geometric(ntk_base(base, rope["alpha"], dim), dim, **rounding), one
        s, seen = mpf(rope["factor"]), max(length, max_positions)
        return geometric(ntk_base(base, s * seen / max_positions - (s - 1), dim), dim, **rounding), one
    if kind == "gradient":
        original = mpf(rope["originalMaxPositionEmbeddings"])
        target = original * mpf(rope["factor"])
        exponent = mp.log(target / (2 * mp.pi)) / mp.log(original / (2 * mp.pi))
        return geometric(base**exponent, dim, **rounding), one
    if kind in ("yarn", "dynamic-yarn"):
        original = rope["originalMaxPositionEmbeddings"]
        if kind == "dynamic-yarn":
            factor = max(one, mpf(length) / original)
        else:
            factor = rope.get("factor")
            factor = mpf(max_positions) / original if factor is None else mpf(factor)
        attention = rope.get("attentionFactor")
        if attention is None:
            top, bottom = rope.get("mscale"), rope.get("mscaleAllDim")
            attention = magnitude(factor, mpf(top)) / magnitude(factor, mpf(bottom)) if top and bottom else magnitude(factor)
        frequencies = yarn(
            geometric(base, dim, **rounding), base, factor, original,
            rope.get("betaFast") or 32, rope.get("betaSlow") or 1, rope.get("truncate", True),
        )
        return frequencies, mpf(attention)
    if kind == "dynamic-linear":
        factor = max(one, mpf(length) / rope["originalMaxPositionEmbeddings"])
        return [w / factor for w in geometric(base, dim, **rounding)], one
    if kind == "ntk-by-parts":
        alpha, beta = mpf(rope.get("alpha", 1)), mpf(rope.get("beta", 32))
        out = []
        for w in geometric(base, dim, **rounding):
            turns = rope["originalMaxPositionEmbeddings"] * w / (2 * mp.pi)
            kept = clamp01((turns - alpha) / (beta - alpha))
            out.append((1 - kept) * w / mpf(rope["factor"]) + kept * w)
        return out, one
    if kind == "llama3":
        original, s = mpf(rope["originalMaxPositionEmbeddings"]), mpf(rope["factor"])
        low, high = mpf(rope["lowFreqFactor"]), mpf(rope["highFreqFactor"])
        out = []
        for w in geometric(base, dim, **rounding):
            wavelength = 2 * mp.pi / w
            if wavelength < original / high:
                out.append(w)
            elif wavelength > original / low:
                out.append(w / s)
            else:
                kept = (original / wavelength - low) / (high - low)
                out.append((1 - kept) * w / s + kept * w)
        return out, one
    if kind == "longrope":
        original = rope["originalMaxPositionEmbeddings"]
        long = length > original
        divisors = rope["longFactor" if long else "shortFactor"]
        attention = rope.get("longMscale" if long else "shortMscale")
        if attention is None:
            attention = rope.get("attentionFactor")
        if attention is None:
            factor = rope.get("factor")
            factor = mpf(max_positions) / original if factor is None else mpf(factor)
            attention = one if factor <= 1 else mp.sqrt(1 + mp.log(factor) / mp.log(mpf(original)))
        return [w / mpf(e) for w, e in zip(geometric(base, dim, **rounding), divisors, strict=True)], mpf(attention)
    if kind == "proportional":
        kept = int(share * head_dim // 2)
        factor = rope.get("factor")
        factor = one if factor is None else mpf(factor)
        all_pairs = geometric(base, head_dim, **rounding)
        return [w / factor if i < kept else mpf(0) for i, w in enumerate(all_pairs)], one
    raise ValueError(f"no exact formula for ropeType {kind!r}")


# --- float64 chains, each operation rounded correctly ----------------------------------------------------------------

def chain_frequencies(base, dim):
    """1 / base^(2i/dim) as three float64 operations: the quotient, the power, the reciprocal."""
    out = []
    for i in range(dim // 2):
        exponent = float(mpf(2 * i) / dim)
        power = float(mpf(base) ** mpf(exponent))
        out.append(float(1 / mpf(power)))
    return out


def nearest_doubles_to_quarter_turns(limit_exponent):
    """Doubles below 2^limit_exponent that are the closest to a multiple of pi/2: up to four a binade, by convergents."""
    found = []
    with mp.workdps(400):
        for exponent in range(0, limit_exponent):
            # x = m 2^(exponent-52) with 2^52 <= m < 2^53, near k pi/2: m / k near alpha.
            alpha = mp.pi / 2 * mpf(2) ** (52 - exponent)
            h0, h1, k0, k1, rest = 1, int(mp.floor(alpha)), 0, 1, alpha
            best = []
            while h1 < 2**53:
                if h1 >= 2**52:
                    best.append((h1, k1))
                rest = 1 / (rest - mp.floor(rest))
                a = int(mp.floor(rest))
                # Semiconvergents too: the last few are nearly as close, and more of them fall in the binade.
                for t in range(max(1, a - 2), a):
                    h, k = t * h1 + h0, t * k1 + k0
                    if 2**52 <= h < 2**53:
                        best.append((h, k))
                h0, h1, k0, k1 = h1, a * h1 + h0, k1, a * k1 + k0
            for m, k in best:
                x = math.ldexp(m, exponent - 52)
                found.append((exponent, abs(mpf(x) - k * mp.pi / 2), x))
    found.sort()
    by_binade = itertools.groupby(found, key=lambda row: row[0])
    return [x for _, rows in by_binade for _, _, x in itertools.islice(rows, 4)]


def hard_powers(count, keep, rng):
    """(base, exponent) whose power lies nearest to the middle between two float64: the hardest to round."""
    rows = []
    bases = [1e4, 1.5e5, 5e5, 1e6, 5e6, 1e7, 1e8]
    for n in range(count):
        base = rng.choice(bases) if n % 2 else float(rng.uniform(2, 1e9))
        exponent = rng.random()
        exact = mpf(base) ** mpf(exponent)
        rounded = float(exact)
        ulp = mpf(math.ulp(rounded))
        distance = abs(abs(exact - mpf(rounded)) / ulp - mpf("0.5"))
        rows.append((distance, base, exponent, rounded))
    rows.sort(key=lambda row: row[0])
    return [[base, exponent, power] for _, base, exponent, power in rows[:keep]]


# --- the fixtures ----------------------------------------------------------------------------------------------------

def rows_of_types():
    """One row a (type, setting, length): the types that transformers has no word for, and the awkward settings."""
    rows = []

    def add(name, head_dim, max_positions, length, **rope):
        frequencies, attention = exact_rope(head_dim, max_positions, rope, length)
        rows.append({
            "name": name, "headDim": head_dim, "maxPositionEmbeddings": max_positions, "rope": rope,
            "sequenceLength": length,
            "inverseFrequencies": [float(w) for w in frequencies], "attentionFactor": float(attention),
        })

    for base in (1e4, 1e6):
        for dim in (64, 128, 80):
            for factor in (1.0, 2.0, 4.0, 8.0):
                add(f"ntk {dim} {base:g} x{factor:g}", dim, 4096, 4096, ropeType="ntk", ropeTheta=base, factor=factor)
    for dim, base, original, factor in ((128, 1e4, 4096, 2.0), (128, 1e4, 4096, 16.0), (128, 1e6, 32768, 4.0),
                                        (64, 150000.0, 4096, 32.0), (96, 1e4, 4096, 1.0)):
        common = {"ropeTheta": base, "factor": factor, "originalMaxPositionEmbeddings": original}
        add(f"ntk-by-parts {dim} {base:g} x{factor:g}", dim, original, original, ropeType="ntk-by-parts", **common)
        add(f"ntk-by-parts {dim} {base:g} x{factor:g} alpha 2 beta 16", dim, original, original,
            ropeType="ntk-by-parts", alpha=2, beta=16, **common)
        add(f"gradient {dim} {base:g} x{factor:g}", dim, original, original, ropeType="gradient", **common)
    for length in (1, 4096, 4097, 6000, 8192, 65536):
        for kind in ("dynamic-linear", "dynamic-yarn"):
            add(f"{kind} at {length}", 128, 4096, length, ropeType=kind, ropeTheta=1e4, originalMaxPositionEmbeddings=4096)
        add(f"dynamic at {length}", 128, 4096, length, ropeType="dynamic", ropeTheta=1e4, factor=2.0)
        add(f"dynamic alpha at {length}", 128, 4096, length, ropeType="dynamic", ropeTheta=1e4, factor=1.0, alpha=1000.0)
    add("dynamic-yarn betas, no rounding", 128, 4096, 16384, ropeType="dynamic-yarn", ropeTheta=1e4,
        originalMaxPositionEmbeddings=4096, betaFast=16, betaSlow=2, truncate=False)

    # YaRN's ramp ends past the last pair: the end is clamped to d - 1, not to d/2 - 1.
    for dim, base, original in ((128, 1e4, 131072), (16, 10.0, 600), (64, 1e4, 1 << 20)):
        for truncate in (True, False):
            add(f"yarn end past the last pair {dim} {base:g} {original} {truncate}", dim, original, original,
                ropeType="yarn", ropeTheta=base, factor=8.0, originalMaxPositionEmbeddings=original, truncate=truncate)

    # The shipped settings of well-known models.
    shipped = [
        ("llama-3.1-8b", 128, 131072, {"ropeType": "llama3", "ropeTheta": 5e5, "factor": 8.0, "lowFreqFactor": 1.0, "highFreqFactor": 4.0, "originalMaxPositionEmbeddings": 8192}),
        ("llama-3.2-1b", 64, 131072, {"ropeType": "llama3", "ropeTheta": 5e5, "factor": 32.0, "lowFreqFactor": 1.0, "highFreqFactor": 4.0, "originalMaxPositionEmbeddings": 8192}),
        ("qwen3 yarn", 128, 40960, {"ropeType": "yarn", "ropeTheta": 1e6, "factor": 4.0, "originalMaxPositionEmbeddings": 32768}),
        ("gpt-oss", 64, 131072, {"ropeType": "yarn", "ropeTheta": 150000.0, "factor": 32.0, "originalMaxPositionEmbeddings": 4096, "betaFast": 32.0, "betaSlow": 1.0, "truncate": False}),
        ("deepseek-v3", 64, 163840, {"ropeType": "yarn", "ropeTheta": 1e4, "factor": 40.0, "originalMaxPositionEmbeddings": 4096, "betaFast": 32.0, "betaSlow": 1.0, "mscale": 1.0, "mscaleAllDim": 1.0}),
        ("deepseek-v2-lite", 64, 163840, {"ropeType": "yarn", "ropeTheta": 1e4, "factor": 40.0, "originalMaxPositionEmbeddings": 4096, "betaFast": 32.0, "betaSlow": 1.0, "mscale": 0.707, "mscaleAllDim": 0.707}),
        ("kimi-k2.5", 64, 262144, {"ropeType": "yarn", "ropeTheta": 5e4, "factor": 64.0, "originalMaxPositionEmbeddings": 4096, "betaFast": 32.0, "betaSlow": 1.0, "mscale": 1.0, "mscaleAllDim": 1.0}),
        ("devstral-small-2", 128, 393216, {"ropeType": "yarn", "ropeTheta": 1e8, "factor": 48.0, "originalMaxPositionEmbeddings": 8192}),
        ("qwen3.8", 256, 262144, {"ropeType": "yarn", "ropeTheta": 1e7, "partialRotaryFactor": 0.25, "factor": 4.0, "originalMaxPositionEmbeddings": 262144}),
        ("gemma-3 global", 256, 131072, {"ropeType": "linear", "ropeTheta": 1e6, "factor": 8.0}),
        ("gemma-3 local", 256, 131072, {"ropeType": "default", "ropeTheta": 1e4}),
        ("gemma-4 full", 512, 262144, {"ropeType": "proportional", "ropeTheta": 1e6, "partialRotaryFactor": 0.25}),
        ("yarn mscale unequal", 64, 163840, {"ropeType": "yarn", "ropeTheta": 1e4, "factor": 40.0, "originalMaxPositionEmbeddings": 4096, "mscale": 0.707, "mscaleAllDim": 1.0}),
        ("yarn factor null", 128, 131072, {"ropeType": "yarn", "ropeTheta": 1e6, "factor": None, "originalMaxPositionEmbeddings": 32768}),
        ("yarn equal betas, no rounding", 128, 131072, {"ropeType": "yarn", "ropeTheta": 1e6, "factor": 4.0, "originalMaxPositionEmbeddings": 32768, "betaFast": 8, "betaSlow": 8, "truncate": False}),
    ]
    for name, head_dim, max_positions, rope in shipped:
        add(name, head_dim, max_positions, max_positions, **rope)
    pairs = 48
    short = [1.0 + 0.01 * (i % 7) for i in range(pairs)]
    long = [1.05 + 63.7 * (i / (pairs - 1)) ** 2 for i in range(pairs)]
    for length in (4096, 4097):
        add(f"longrope at {length}", 96, 131072, length, ropeType="longrope", ropeTheta=1e4,
            originalMaxPositionEmbeddings=4096, shortFactor=short, longFactor=long)
        add(f"longrope with magnitudes at {length}", 96, 131072, length, ropeType="longrope", ropeTheta=1e4,
            originalMaxPositionEmbeddings=4096, shortFactor=short, longFactor=long, shortMscale=1.243163121016122,
            longMscale=1.25, attentionFactor=2.0)
    return rows


def main():
    made_by = {
        "generator": "reference/rope_exact.py",
        "python": platform.python_version(),
        "mpmath": mpmath.__version__,
        "decimalDigits": mp.dps,
    }
    rng = random.Random(20)

    write("rope-exact-frequencies.json", {
        **made_by,
        "chainIs": "1 / base^(2i/dim) in float64: quotient, power and reciprocal, each correctly rounded",
        "chain": [
            {"ropeTheta": base, "rotaryDim": dim, "inverseFrequencies": chain_frequencies(base, dim)}
            for base in (1e4, 150000.0, 5e5, 1e6, 1e7, 1e8) for dim in (16, 32, 64, 80, 96, 128, 256)
        ],
        "exactIs": "the formula at 50 digits, rounded once",
        "exact": rows_of_types(),
        "powersAre": "[base, exponent, base^exponent correctly rounded], chosen near the middle of two float64",
        "powers": hard_powers(30000, 150, rng),
    })

    positions = [0, 1, 2, 255, 257, 4095, 32767, 131071, 2**19 + 1, 1048575, 2**20, 2**20 + 1]
    tables = []
    for base, dim in ((1e4, 64), (1e4, 128), (5e5, 64), (1e6, 128), (1e8, 96)):
        frequencies = chain_frequencies(base, dim)
        cos, sin = [], []
        for p in positions:
            angles = [mpf(p * w) for w in frequencies]  # the float64 product: rounded once
            cos.append([float(mp.cos(a)) for a in angles])
            sin.append([float(mp.sin(a)) for a in angles])
        tables.append({"ropeTheta": base, "rotaryDim": dim, "cos": cos, "sin": sin})
    angles = set(nearest_doubles_to_quarter_turns(45))
    for k in [1, 2, 3, 4, 5, 7, 8, 355, 710, 103993, 2**19, 2**20, 667544]:
        near = float(k * mp.pi / 2)
        angles |= {near, math.nextafter(near, math.inf), math.nextafter(near, 0.0)}
        near = float((2 * k + 1) * mp.pi / 4)
        angles |= {near, math.nextafter(near, math.inf), math.nextafter(near, 0.0)}
    angles |= {float(2**e) for e in (-30, -10, -1, 0, 10, 20, 30, 44, 45)} | {0.0, 1e-300, 5e-324, 2.0**45 - 0.0078125}
    angles |= {rng.uniform(2.0 ** (e - 1), 2.0**e) for e in range(1, 46) for _ in range(4)}
    write("rope-exact-tables.json", {
        **made_by,
        "tablesAre": "cos and sin of the float64 product position × frequency, correctly rounded; "
                     "the frequencies are the chain of rope-exact-frequencies.json",
        "positions": positions,
        "tables": tables,
        "anglesAre": "[x, cos x, sin x] correctly rounded: near quarter and eighth turns, powers of two, random, to 2^45",
        "angles": [[x, float(mp.cos(mpf(x))), float(mp.sin(mpf(x)))] for x in sorted(angles)],
    })


def write(name, fixture):
    path = FIXTURES / name
    lines = json.dumps(fixture, indent=None, separators=(",", ":"))
    # One row a line: a change of a setting is then one line of a diff.
    path.write_text(lines.replace(',{"', ',\n{"') + "\n")
    print(f"{path.relative_to(FIXTURES.parent.parent)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

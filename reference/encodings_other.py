"""Golden values for every encoding but the rotary ones: transformers' own modules where it has them, else the papers'
formulas in mpmath or in plain loops built the way the authors' code builds them. Writes test/fixtures/encodings-other.json.

Run by hand from the repository root: python reference/encodings_other.py
"""

import json
import math
import platform

import mpmath
import numpy as np
import torch
import transformers
from transformers import Cohere2Config, Gemma2Config, Gemma3TextConfig, Llama4TextConfig, SmolLM3Config, T5Config
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.deepseek_v3.configuration_deepseek_v3 import DeepseekV3Config
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.ministral3.modeling_ministral3 import get_llama_4_attn_scale
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention
from transformers.models.whisper.modeling_whisper import sinusoids
from transformers.models.xglm.modeling_xglm import XGLMSinusoidalPositionalEmbedding
from transformers.models.xlm.modeling_xlm import create_sinusoidal_embeddings

mpmath.mp.prec = 200
mp = mpmath.mpf
OUT = "test/fixtures/encodings-other.json"


def floats(values):
    """float32 numbers as the float64 that they are; mpmath numbers rounded once to float64."""
    return [float(v) for v in values]


def numbers(rng, *shape):
    """Random numbers with few digits, so that the fixture stays short and the inputs exact."""
    return np.round(rng.normal(size=shape), 3)


# --- T5 -------------------------------------------------------------------------------------------------------------

LIMIT = 100_000


def exact_bucket(n, size, max_exact, max_distance):
    """The formula in whole numbers: step k is reached when (n/e)^steps >= (m/e)^k."""
    if n < max_exact:
        return n
    steps = size - max_exact
    k = 0
    while k < steps and n**steps * max_exact ** (k + 1) >= max_distance ** (k + 1) * max_exact**steps:
        k += 1
    return min(max_exact + k, size - 1)


def t5_case(num_buckets, max_distance, bidirectional):
    distances = torch.arange(0, LIMIT + 1)
    size = num_buckets // 2 if bidirectional else num_buckets

    def table(relative):
        buckets = T5Attention._relative_position_bucket(
            relative, bidirectional=bidirectional, num_buckets=num_buckets, max_distance=max_distance
        ).numpy()
        return buckets

    past = table(-distances)
    ahead = table(distances)
    assert (np.diff(past) >= 0).all()
    # Both directions are the same table but for the offset, so first distances hold everything up to LIMIT.
    if bidirectional:
        assert (ahead[1:] == past[1:] + size).all() and ahead[0] == 0
    else:
        assert (ahead == 0).all()
    # [bucket, first distance in it], for the buckets that are used.
    first = [[int(past[0]), 0]]
    for at in np.nonzero(np.diff(past))[0]:
        first.append([int(past[at + 1]), int(at + 1)])
    # Both tables are monotone, so they can differ at borders alone; long tables are compared there only.
    compared = range(max_distance + 2) if max_distance <= 4096 else (n + o for _, n in first for o in range(-3, 4))
    differ = [
        [n, int(past[n]), exact]
        for n in compared
        if 0 <= n <= LIMIT and past[n] != (exact := exact_bucket(n, size, size // 2, max_distance))
    ]
    return {
        "numBuckets": num_buckets,
        "maxDistance": max_distance,
        "bidirectional": bidirectional,
        "firstDistances": first,
        # [distance, float32's bucket, exact bucket]
        "differFromExact": differ,
    }


def t5():
    pairs = [
        (32, 128), (32, 256), (64, 128), (32, 512), (16, 64), (32, 20), (128, 1024), (256, 4096), (32, 2048),
        (50, 1000), (7, 13), (320, 800), (33, 128), (32, 100000), (64, 65536), (12, 729), (9, 128), (17, 343),
        (19, 25), (48, 81), (51, 81), (54, 64), (54, 125), (57, 4096), (128, 2401), (2, 128), (96, 81), (18, 128),
    ]  # fmt: skip
    cases = [
        t5_case(b, m, bidirectional)
        for b, m in pairs
        for bidirectional in (False, True)
        if m > (b // 2 if bidirectional else b) // 2 >= 1
    ]
    # Whole modules, with a cache offset in the decoder.
    torch.manual_seed(1)
    config = T5Config(num_heads=3, d_kv=4, d_model=12, relative_attention_num_buckets=8, relative_attention_max_distance=20)
    modules = []
    for is_decoder, query_length, key_length, past in ((False, 30, 30, 0), (True, 4, 30, 26)):
        config.is_decoder = is_decoder
        attention = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
        torch.nn.init.normal_(attention.relative_attention_bias.weight)
        with torch.no_grad():
            bias = attention.compute_bias(query_length, key_length, past_seen_tokens=past)
        modules.append({
            "bidirectional": not is_decoder,
            "numBuckets": 8,
            "maxDistance": 20,
            "numHeads": 3,
            "weights": floats(attention.relative_attention_bias.weight.detach().flatten()),
            "queryPositions": list(range(past, past + query_length)),
            "numKeys": key_length,
            # [H, T, S]; every row of the short decoder, three rows of the encoder
            "rows": list(range(query_length)) if is_decoder else [0, 13, 29],
            "bias": floats((bias[0] if is_decoder else bias[0][:, [0, 13, 29]]).flatten()),
        })
    return {"limit": LIMIT, "cases": cases, "modules": modules}


# --- ALiBi ----------------------------------------------------------------------------------------------------------


def alibi():
    heads = [*range(1, 34), 40, 48, 56, 64, 71, 96, 112, 128]
    bloom = {
        n: floats(build_alibi_tensor(torch.ones(1, 2), n, torch.float32).reshape(n, 2)[:, 1]) for n in heads
    }
    mpt = []
    for max_bias in (8, 4, 16):
        for n in (1, 3, 4, 6, 7, 12, 16, 20, 32, 33, 64):
            tensor = build_mpt_alibi_tensor(n, 3, alibi_bias_max=max_bias)  # [n, 1, 3], distances −2, −1, 0
            mpt.append({"maxBias": max_bias, "numHeads": n, "slopes": floats(-tensor[:, 0, 1])})
    # Correctly rounded, by MPT's other construction: the larger power of two, its odd slopes first.
    exact = {}
    for n in (1, 2, 3, 5, 6, 7, 8, 12, 16, 20, 33, 40, 64, 112):
        c = 1
        while c < n:
            c *= 2
        all_slopes = [mp(2) ** (-mp(8) * (h + 1) / c) for h in range(c)]
        exact[n] = floats(all_slopes if c == n else (all_slopes[1::2] + all_slopes[0::2])[:n])
    return {"bloom": bloom, "mpt": mpt, "exact": exact}


# --- Sinusoidal -----------------------------------------------------------------------------------------------------


def sinusoidal():
    modules = []

    def module(source, tensor, rows, **options):
        modules.append({"source": source, "rows": rows, "table": floats(tensor[rows].flatten()), **options})

    rows = [0, 1, 2, 7, 31, 63]
    for dim in (16, 20):
        marian = MarianSinusoidalPositionalEmbedding(64, dim).create_weight()
        module("MarianSinusoidalPositionalEmbedding", marian, rows, hiddenSize=dim, layout="concatenated", exponent="vaswani")
        xlm = create_sinusoidal_embeddings(64, dim, torch.empty(64, dim))
        module("xlm create_sinusoidal_embeddings", xlm, rows, hiddenSize=dim, layout="interleaved", exponent="vaswani")
        xglm = XGLMSinusoidalPositionalEmbedding.get_embedding(64, dim)
        module("XGLMSinusoidalPositionalEmbedding", xglm, rows, hiddenSize=dim, layout="concatenated", exponent="fairseq")
        module("whisper sinusoids", sinusoids(64, dim), rows, hiddenSize=dim, layout="concatenated", exponent="fairseq")

    # The table that the float64 formula should give, angle in 200 bits: (position, hand, sin, cos) and the hands.
    exact = []
    for hidden_size, theta, exponent in ((128, 10000, "vaswani"), (64, 10000, "fairseq"), (8, 500, "vaswani")):
        half = hidden_size // 2
        divisor = half if exponent == "vaswani" else half - 1
        points = []
        for position in (0, 1, 2, 511, 4095, 65537, 1048576):
            for hand in sorted({0, 1, half // 3, half // 2, half - 1}):
                omega = 1 / mp(theta) ** (mp(hand) / divisor)
                points.append([position, hand, float(mpmath.sin(position * omega)), float(mpmath.cos(position * omega))])
        wavelengths = [2 * mpmath.pi * mp(theta) ** (mp(j) / divisor) for j in range(half)]
        exact.append({
            "hiddenSize": hidden_size, "theta": theta, "exponent": exponent,
            "points": points, "wavelengths": floats(wavelengths),
        })  # fmt: skip
    return {"modules": modules, "exact": exact}


# --- KERPLE, FIRE, CoPE, xPos, FoPE ---------------------------------------------------------------------------------


def kerple():
    cases = []
    for kind in ("logarithmic", "power"):
        for r1, r2 in ((0.01, 0.01), (0.5, 1), (1.25, 0.3), (2, 2), (0.07, 1.9)):
            for d in (0, 1, 2, 17, 1000, 1048576):
                r1m, r2m = mp(r1), mp(r2)
                value = r1m * mp(d) ** r2m if kind == "power" else r1m * mpmath.log(1 + r2m * d)
                cases.append({"kind": kind, "r1": r1, "r2": r2, "distance": d, "bias": -float(value)})
    return cases


def fire():
    rng = np.random.default_rng(5)
    layers = [
        {"weight": numbers(rng, 6, 1), "bias": numbers(rng, 6)},
        {"weight": numbers(rng, 5, 6), "bias": numbers(rng, 5)},
        {"weight": numbers(rng, 3, 5), "bias": numbers(rng, 3)},
    ]
    c, threshold, eps = 0.1, 12.5, 1e-6
    queries, keys = [0, 1, 5, 12, 13, 40, 700], [0, 1, 4, 12, 40]
    bias = np.zeros((3, len(queries), len(keys)))
    for t, i in enumerate(queries):
        for s, j in enumerate(keys):
            share = mpmath.log(mp(c) * abs(i - j) + 1) / (mpmath.log(mp(c) * max(i, mp(threshold)) + 1) + mp(eps))
            x = [share]
            for at, layer in enumerate(layers):
                x = [sum(mp(w) * v for w, v in zip(row, x)) + mp(b) for row, b in zip(layer["weight"], layer["bias"])]
                if at < len(layers) - 1:
                    x = [max(v, mp(0)) for v in x]
            bias[:, t, s] = floats(x)
    return {
        "layers": [{k: v.flatten().tolist() for k, v in layer.items()} for layer in layers],
        "c": c, "threshold": threshold, "epsilon": eps,
        "queryPositions": queries, "keyPositions": keys, "bias": bias.flatten().tolist(),
    }  # fmt: skip


def cope():
    """By tensor operations in float64, the way the paper's listing goes: flip, cumulative sum, flip, clamp, gather."""
    rng = np.random.default_rng(6)
    cases = []
    for heads, queries, keys, max_positions in ((2, 6, 6, 3), (1, 2, 9, 16), (1, 5, 5, 1)):
        logits = numbers(rng, heads, queries, keys) * 3
        position_logits = numbers(rng, heads, queries, max_positions)
        t = torch.tensor(logits)
        future = torch.ones(queries, keys).triu(keys - queries + 1).bool()
        gates = torch.sigmoid(t.masked_fill(future, -torch.inf))
        positions = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=max_positions - 1)
        low, high = positions.floor().long(), positions.ceil().long()
        z = torch.tensor(position_logits)
        w = positions - low
        bias = z.gather(-1, high) * w + z.gather(-1, low) * (1 - w)
        cases.append({
            "numHeads": heads, "numQueries": queries, "numKeys": keys, "maxPositions": max_positions,
            "logits": logits.flatten().tolist(), "positionLogits": position_logits.flatten().tolist(),
            "positions": positions.flatten().tolist(), "bias": bias.flatten().tolist(),
        })  # fmt: skip
    return cases


def xpos():
    """TorchScale's order: positions counted from −ceil(length/2), the exponent over 512; here in 200 bits."""
    cases = []
    for head_dim, length, fixed in ((8, 10, None), (8, 11, None), (64, 4096, None), (16, 100, 0), (16, 100, 37)):
        centre = (length + 1) // 2 if fixed is None else fixed
        rows = []
        for p in sorted({0, 1, length // 2, length - 1}):
            for i in range(0, head_dim // 2, max(1, head_dim // 8)):
                zeta = (2 * i + mp("0.4") * head_dim) / (mp("1.4") * head_dim)
                scale = zeta ** (mp(p - centre) / 512)
                angle = p / mp(10000) ** (mp(2 * i) / head_dim)
                rows.append([p, i, *floats([scale * mpmath.cos(angle), scale * mpmath.sin(angle),
                                            mpmath.cos(angle) / scale, mpmath.sin(angle) / scale])])  # fmt: skip
        case = {"headDim": head_dim, "length": length, "rows": rows}
        cases.append(case if fixed is None else {**case, "centre": fixed})
    return cases


def fope():
    rng = np.random.default_rng(7)
    cases = []
    for head_dim, trained, mixed, padding in ((16, 512, 4, "ones"), (16, 512, 6, "zero-frequency"), (8, 64, 2, "ones")):
        omegas = [1 / mp(10000) ** (mp(2 * i) / head_dim) for i in range(head_dim // 2)]
        kept = [w for w in omegas if w > 2 * mpmath.pi / trained]
        cos_c, sin_c = numbers(rng, len(kept), mixed), numbers(rng, len(kept), mixed)
        positions = [0, 1, 63, 1000]
        cos = np.ones((len(positions), head_dim // 2))
        sin = np.full((len(positions), head_dim // 2), 1.0 if padding == "ones" else 0.0)
        for t, p in enumerate(positions):
            for m in range(mixed):
                cos[t, m] = float(sum(mpmath.cos(p * w) * mp(cos_c[k, m]) for k, w in enumerate(kept)))
                sin[t, m] = float(sum(mpmath.sin(p * w) * mp(sin_c[k, m]) for k, w in enumerate(kept)))
        cases.append({
            "headDim": head_dim, "trainedLength": trained, "padding": padding, "kept": floats(kept),
            "cosCoefficients": cos_c.flatten().tolist(), "sinCoefficients": sin_c.flatten().tolist(),
            "positions": positions, "cos": cos.flatten().tolist(), "sin": sin.flatten().tolist(),
        })  # fmt: skip
    return cases


# --- Position maps: matrices as the authors build them, −1 where a key is in the future -----------------------------


def lower(matrix):
    return [[int(v) if j <= i else -1 for j, v in enumerate(row)] for i, row in enumerate(matrix)]


def position_maps():
    cases = []
    n = 40
    p = np.arange(n)
    distance = p[:, None] - p[None, :]
    for trained, group, window in ((16, 4, 8), (24, 3, 9), (16, 4, 6), (64, 1, 8)):
        grouped = (p // group + window - window // group)[:, None] - (p // group)[None, :]
        # The neighbour mask is a triangle of ones less a triangle that starts `window` further down.
        neighbour = np.tril(np.ones((n, n)))
        neighbour[window:, :-window] -= np.tril(np.ones((n - window, n - window)))
        cases.append({
            "map": "self-extend", "options": {"trainedLength": trained, "groupSize": group, "neighborWindow": window},
            "matrix": lower(np.where(neighbour > 0, distance, grouped)),
        })  # fmt: skip
    for trained, window in ((16, 8), (8, 1)):
        cases.append({
            "map": "rerope", "options": {"trainedLength": trained, "window": window},
            "matrix": lower(np.where(np.abs(distance) < window, distance, window)),
        })  # fmt: skip
    for trained, shift, local in ((40, 13, 4), (30, 12, 0)):
        # The decoder: the last `shift` keys keep their distance, the ones before get a query at q − shift + local.
        cases.append({
            "map": "string", "options": {"trainedLength": trained, "shift": shift, "localWindow": local},
            "matrix": lower(np.where(distance < shift, distance, distance - shift + local)),
        })  # fmt: skip
    for trained, chunk_size, local in ((16, 12, 3), (16, 12, 0), (12, 12, 4), (20, 8, 6)):
        c = chunk_size - local
        k = p % c
        matrix = np.zeros((n, n), dtype=int)
        q_intra = np.arange(c)
        q_succ = np.minimum(np.arange(c) + c, chunk_size)
        # Chunk by chunk, as ChunkLlama's prefill goes.
        for begin in range(0, n, c):
            end = min(begin + c, n)
            for q in range(begin, end):
                r = q - begin
                matrix[q, begin:end] = q_intra[r] - k[begin:end]
                if begin > 0:
                    matrix[q, begin - c : begin] = q_succ[r] - k[begin - c : begin]
                    matrix[q, : begin - c] = q_succ[c - 1] - k[: begin - c]
        cases.append({
            "map": "dual-chunk", "options": {"trainedLength": trained, "chunkSize": chunk_size, "localSize": local},
            "matrix": lower(matrix),
        })  # fmt: skip
    return cases


# --- Layers and factors ---------------------------------------------------------------------------------------------


def layers():
    return {
        "gemma2": Gemma2Config(num_hidden_layers=7).layer_types,
        "gemma3": Gemma3TextConfig(num_hidden_layers=13).layer_types,
        "cohere2": Cohere2Config(num_hidden_layers=9).layer_types,
        "smollm3": SmolLM3Config(num_hidden_layers=9, pad_token_id=0).no_rope_layers,
        "smollm3Interval2": SmolLM3Config(num_hidden_layers=5, no_rope_layer_interval=2, pad_token_id=0).no_rope_layers,
        "llama4": Llama4TextConfig(num_hidden_layers=9).no_rope_layers,
        "llama4Types": Llama4TextConfig(num_hidden_layers=9).layer_types,
    }


def factors():
    deepseek = []
    for factor, mscale_all_dim in ((40, 1.0), (40, 0.707), (4, 1.0), (64, 0.5), (40, 0)):
        config = DeepseekV3Config(
            rope_parameters={
                "rope_type": "yarn", "rope_theta": 10000.0, "factor": float(factor), "mscale": 1.0,
                "mscale_all_dim": mscale_all_dim, "original_max_position_embeddings": 4096,
                "beta_fast": 32, "beta_slow": 1,
            },
            max_position_embeddings=4096 * factor, hidden_size=64, num_attention_heads=2, num_hidden_layers=1,
            q_lora_rank=8, kv_lora_rank=8,
        )  # fmt: skip
        attention = DeepseekV3Attention(config, layer_idx=0)
        deepseek.append([factor, mscale_all_dim, attention.scaling * math.sqrt(attention.qk_head_dim)])
    positions = [0, 1, 14, 15, 16, 17, 47, 8190, 8191, 8192, 131071]
    ministral = get_llama_4_attn_scale(torch.tensor([positions], dtype=torch.float64), 0.1, 16).flatten()
    llama4 = torch.log1p(torch.floor((torch.tensor(positions, dtype=torch.float64) + 1.0) / 16)) * 0.1 + 1.0
    return {
        "deepseek": deepseek,
        "temperaturePositions": positions,
        "ministral3": floats(ministral),
        # Llama4TextAttention's expression, evaluated in float64.
        "llama4": floats(llama4),
        "logn4096": floats(max(mp(1), mpmath.log(p + 1) / mpmath.log(4096)) for p in positions),
        # [coefficient, length / trained, factor]
        "drope": [[c, r, float(1 + mp(c) * mpmath.log(r))] for c in (0.412, 0.103) for r in (1, 2, 16)],
    }


def main():
    fixture = {
        "generator": "reference/encodings_other.py",
        "versions": {
            "python": platform.python_version(), "torch": torch.__version__, "transformers": transformers.__version__,
            "mpmath": mpmath.__version__, "numpy": np.__version__,
        },
        "t5": t5(),
        "alibi": alibi(),
        "sinusoidal": sinusoidal(),
        "kerple": kerple(),
        "fire": fire(),
        "cope": cope(),
        "xpos": xpos(),
        "fope": fope(),
        "positionMaps": position_maps(),
        "layers": layers(),
        "factors": factors(),
    }  # fmt: skip
    assert transformers.__version__ == "5.24.0"
    with open(OUT, "w") as file:
        json.dump(fixture, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()

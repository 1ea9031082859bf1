"""Rotary tables of the real transformers classes: writes test/fixtures/rope-transformers.json and rope-rotation.json.

Each row builds a model's own configuration and rotary class, calls its forward once with a fresh module at one
sequence length, and records the frequencies that this call used. Before a row is written, its cos and sin at
position 1 are compared with those frequencies, so that the row states what the model computes and not only what it
stores. `rope` is what transformers' standardisation left of the given configuration, without the keys that the class
ignores. Rows whose float32 result is farther than 3e-7 from the exact formula carry `exact`, from rope_exact.py.

    python reference/rope_fixtures.py
"""

import importlib
import itertools
import logging
import math
import pathlib
import platform

import mpmath
import numpy as np
import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from rope_exact import exact_rope, write

logging.disable(logging.WARNING)  # transformers logs what it only half understands; the rows say it better
torch.set_num_threads(1)

PARITY = 3e-7

# The rotary class of each model type, when it is not <Name>RotaryEmbedding for the configuration <Name>[Text]Config.
CLASSES = {
    "gemma4_text": ("gemma4", "Gemma4TextRotaryEmbedding"),
    "gemma3_text": ("gemma3", "Gemma3RotaryEmbedding"),
    "llama4_text": ("llama4", "Llama4TextRotaryEmbedding"),
    "qwen3_5_text": ("qwen3_5", "Qwen3_5TextRotaryEmbedding"),
    "qwen3_vl_text": ("qwen3_vl", "Qwen3VLTextRotaryEmbedding"),
    "qwen2_vl_text": ("qwen2_vl", "Qwen2VLRotaryEmbedding"),
}
# Keys that each type reads. partial_rotary_factor is added for the classes that honour it.
KEYS = {
    "default": [],
    "linear": ["factor"],
    "dynamic": ["factor", "alpha"],
    "yarn": ["factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "truncate", "attention_factor",
             "mscale", "mscale_all_dim"],
    "longrope": ["factor", "original_max_position_embeddings", "short_factor", "long_factor", "attention_factor"],
    "llama3": ["factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"],
    "proportional": ["factor"],
}
PARTIAL = {"phi", "phi3", "gpt_neox", "glm", "glm4", "stablelm", "nemotron", "persimmon", "qwen3_5_text", "qwen3_next",
           "laguna", "mistral4"}

rows = []
names = set()


def rotary_class(model_type, config):
    if model_type in CLASSES:
        folder, name = CLASSES[model_type]
    else:
        folder = type(config).__module__.split(".")[-2]
        name = type(config).__name__.removesuffix("Config") + "RotaryEmbedding"
    return getattr(importlib.import_module(f"transformers.models.{folder}.modeling_{folder}"), name)


def float32_list(values):
    """float32 values as the shortest decimals that name them: Math.fround restores each exactly."""
    return [float(str(v)) for v in np.asarray(values, dtype=np.float32)]


def camel(key):
    head, *rest = key.split("_")
    return head + "".join(part.capitalize() for part in rest)


def width(head_dim, heads=4, **more):
    """A configuration of this head dimension that says so twice, for classes with and without a head_dim key."""
    return {"hidden_size": head_dim * heads, "num_attention_heads": heads, "num_key_value_heads": heads,
            "head_dim": head_dim, **more}


def case(model_type, head_dim, given, lengths=(None,), layer_type=None, note=None):
    """Adds one row a length. None: the length max_position_embeddings."""
    for asked in lengths:
        config = CONFIG_MAPPING[model_type](**given)
        cls = rotary_class(model_type, config)
        module = cls(config)
        length = asked or config.max_position_embeddings
        positions = torch.tensor([[1, length - 1]])
        if model_type in ("qwen2_vl_text", "qwen3_vl_text", "qwen3_5_text"):
            positions = positions.expand(3, 1, 2)  # three equal ids: text
        arguments = (torch.zeros(1, 2, 4), positions) + ((layer_type,) if layer_type else ())
        out = module(*arguments)
        prefix = f"{layer_type}_" if layer_type else ""
        inverse = getattr(module, f"{prefix}inv_freq")
        attention = float(getattr(module, f"{prefix}attention_scaling"))

        # What was used, from the tables at position 1.
        if isinstance(out, torch.Tensor):
            cos, sin = out.real[0, 0], out.imag[0, 0]
        else:
            cos, sin = out[0][0, 0], out[1][0, 0]
        if model_type in ("cohere", "cohere2"):
            cos, sin = cos[0::2], sin[0::2]
        cos, sin = cos[: len(inverse)].double().numpy(), sin[: len(inverse)].double().numpy()
        np.testing.assert_allclose(cos, np.cos(inverse.double().numpy()) * attention, atol=4e-7 * attention + 1e-30)
        np.testing.assert_allclose(sin, np.sin(inverse.double().numpy()) * attention, atol=4e-7 * attention + 1e-30)

        stated = config.rope_parameters[layer_type] if layer_type else config.rope_parameters
        kind = stated["rope_type"]
        rope = {"rope_type": kind, "rope_theta": stated["rope_theta"]}
        rope |= {key: stated[key] for key in KEYS[kind] if key in stated}
        if (model_type in PARTIAL or kind == "proportional") and "partial_rotary_factor" in stated:
            rope["partial_rotary_factor"] = stated["partial_rotary_factor"]

        exact, exact_attention = exact_rope(
            head_dim, config.max_position_embeddings, {camel(key): value for key, value in rope.items()}, length)
        worst = distance(inverse, exact)
        assert abs(attention - exact_attention) < 1e-13, (model_type, rope, attention, exact_attention)

        label = f"{model_type}{' ' + layer_type if layer_type else ''} {head_dim} {kind}"
        if note:
            label += f": {note}"
        if asked:
            label += f" at {asked}"
        assert label not in names, label
        names.add(label)
        row = {"name": label, "class": cls.__name__}
        if layer_type:
            row["layerType"] = layer_type
        row |= {"headDim": head_dim, "maxPositionEmbeddings": config.max_position_embeddings, "rope": rope,
                "sequenceLength": length, "inverseFrequencies": float32_list(inverse), "attentionFactor": attention}
        if worst > 0.97 * PARITY:
            row["exact"] = [float(e) for e in exact]
            row["float32Error"] = float(f"{float(worst) * 1.005:.2e}")  # never rounded below the error itself
            row["why"] = why(inverse, kind, head_dim, config.max_position_embeddings, rope, length)
        rows.append(row)


def distance(inverse, exact):
    """max |float32 / exact - 1|; zeros must coincide."""
    values = inverse.double().tolist()
    assert all((v == 0) == (e == 0) for v, e in zip(values, exact, strict=True))
    return max((abs(v / e - 1) for v, e in zip(values, exact) if e), default=0)


def why(inverse, kind, head_dim, max_positions, rope, length):
    """Why float32 is this far off: found by rounding only the exponent 2i/d to float32 and asking how much is left."""
    def to_float32(exponent):
        return mpmath.mpf(float(np.float32(float(exponent))))

    told = {camel(key): value for key, value in rope.items()}
    rounded, _ = exact_rope(head_dim, max_positions, told, length, round_exponent=to_float32)
    if distance(inverse, rounded) <= PARITY:
        return "exponent"  # 2i/d is not a float32, and ln(base) times its rounding error is the relative error
    # The blend cancels: (1 - ramp) or (turns - low) loses the digits that ω / factor would need.
    assert kind in ("yarn", "llama3"), (kind, rope)
    return "blend"


def parameters(rope_type, theta=10000.0, **more):
    return {"rope_type": rope_type, "rope_theta": theta, **more}


DIMS = (16, 32, 64, 80, 96, 128, 256)
THETAS = (1e4, 1.5e5, 5e5, 1e6, 1e7, 1e8)


def plain():
    for dim, theta in itertools.product(DIMS, THETAS):
        case("llama", dim, width(dim, rope_parameters=parameters("default", theta)), note=f"theta {theta:g}")
    case("llama", 128, {}, note="class defaults")
    case("llama", 64, width(64, rope_theta=5e5), note="version 4 keys, rope_theta")
    for model_type, dim in (("mistral", 128), ("qwen2", 128), ("qwen2_moe", 64), ("qwen3", 128), ("gemma", 256),
                            ("gemma2", 256), ("mixtral", 128), ("olmo", 128), ("olmo2", 128), ("starcoder2", 128),
                            ("granite", 64), ("exaone4", 128), ("llama4_text", 128), ("smollm3", 64), ("cohere", 128),
                            ("cohere2", 128), ("apertus", 128), ("hunyuan_v1_dense", 128), ("falcon", 64),
                            ("qwen2_vl_text", 128), ("qwen3_vl_text", 128)):
        given = width(dim)
        if model_type == "falcon":
            given = {"hidden_size": dim * 4, "num_attention_heads": 4}
        if model_type == "qwen2_vl_text":
            given["rope_parameters"] = parameters("default", 1e6, mrope_section=[16, 24, 24])
        case(model_type, dim, given, note="class defaults but for the width")
    # Multi-head latent attention: the rotary width is qk_rope_head_dim, whatever the rest of the head is.
    for width_of_rope in (32, 64):
        case("deepseek_v3", width_of_rope, {"qk_rope_head_dim": width_of_rope}, note="latent attention")


def partial():
    for model_type, dim, factors in (("gpt_neox", 96, (0.25,)), ("gpt_neox", 64, (0.25, 1.0)), ("stablelm", 80, (0.25,)),
                                     ("stablelm", 64, (0.5,)), ("phi", 80, (0.4,)), ("phi", 64, (0.5,)),
                                     ("glm", 128, (0.5,)), ("glm4", 128, (0.5,)), ("nemotron", 128, (0.5,)),
                                     ("persimmon", 64, (0.5,)), ("qwen3_5_text", 256, (0.25,)),
                                     ("qwen3_next", 256, (0.25,)), ("phi3", 128, (0.75,))):
        for factor in factors:
            given = width(dim, rope_parameters=parameters("default", 1e4, partial_rotary_factor=factor))
            if model_type in ("gpt_neox", "phi", "stablelm", "persimmon"):
                given.pop("head_dim")
            case(model_type, dim, given, note=f"partial {factor:g}")
    # Scaled and partial together, on classes that rotate a part of the head.
    for kind, more in (("linear", {"factor": 4.0}), ("yarn", {"factor": 4.0, "original_max_position_embeddings": 2048}),
                       ("llama3", {"factor": 8.0, "original_max_position_embeddings": 1024, "low_freq_factor": 1.0,
                                   "high_freq_factor": 4.0})):
        given = width(128, max_position_embeddings=8192, rope_parameters=parameters(kind, 1e4, partial_rotary_factor=0.5, **more))
        case("glm4", 128, given, note="partial 0.5")
    case("qwen3_5_text", 256, width(256, max_position_embeddings=1048576, rope_parameters=parameters(
        "yarn", 1e7, partial_rotary_factor=0.25, factor=4.0, original_max_position_embeddings=262144)), note="x4")
    case("stablelm", 64, {"hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4,
                          "max_position_embeddings": 64, "rope_parameters": parameters(
                              "dynamic", 1e4, partial_rotary_factor=0.5, factor=2.0)},
         lengths=(64, 65, 1000), note="partial 0.5")


def linear():
    for dim, factor in itertools.product((16, 64, 96, 128), (1.0, 1.5, 4.0, 8.0)):
        theta = {16: 1e4, 64: 5e5, 96: 1e4, 128: 1e6}[dim]
        case("llama", dim, width(dim, rope_parameters=parameters("linear", theta, factor=factor)), note=f"x{factor:g}")
    case("llama", 128, width(128, rope_scaling={"type": "linear", "factor": 8}), note="version 4 keys, integer factor")


def dynamic():
    for dim, theta, factor, most in ((128, 1e4, 2.0, 2048), (64, 5e5, 4.0, 512), (80, 1e4, 1.0, 256),
                                     (96, 1e6, 8.0, 4096)):
        given = width(dim, max_position_embeddings=most, rope_parameters=parameters("dynamic", theta, factor=factor))
        case("llama", dim, given, lengths=(1, most - 1, most, most + 1, 2 * most, 4 * most, 131072), note=f"x{factor:g}")
    for alpha in (1.0, 50.0, 1000.0):
        given = width(128, max_position_embeddings=32768,
                      rope_parameters=parameters("dynamic", 1e4, factor=1.0, alpha=alpha))
        case("hunyuan_v1_dense", 128, given, lengths=(1, 65536), note=f"alpha {alpha:g}")


def yarn():
    def one(dim, theta, factor, original, note, model_type="llama", most=None, **more):
        most = most or int(original * (factor or 4))
        given = width(dim, max_position_embeddings=most, rope_parameters=parameters(
            "yarn", theta, factor=factor, original_max_position_embeddings=original, **more))
        case(model_type, dim, given, note=note)

    for dim, theta in itertools.product(DIMS, (1e4, 5e5, 1e6, 1e8)):
        one(dim, theta, 4.0, 4096, f"theta {theta:g} x4")
    for factor in (1.0, 1.5, 2.0, 16.0, 40.0, 64.0):
        one(128, 1e4, factor, 4096, f"x{factor:g}")
    one(128, 1e6, 4.0, 32768, "Qwen3", "qwen3", most=40960)
    one(128, 1e6, 4.0, 32768, "Qwen2.5", "qwen2", most=32768)
    one(128, 1e8, 48.0, 8192, "theta 1e8 x48", "mistral")
    one(128, 5e6, 2.0, 65536, "theta 5e6 x2", "smollm3")
    one(64, 1e4, 4.0, 4096, "x4 interleaved class", "cohere2")
    case("gpt_oss", 64, {}, note="class defaults")
    one(64, 150000.0, 32.0, 4096, "rounded ends", "gpt_oss", truncate=True)
    for truncate in (True, False):
        one(128, 1e4, 16.0, 4096, f"truncate {truncate}", truncate=truncate)
        one(80, 1e4, 4.0, 2048, f"truncate {truncate}", truncate=truncate)
        one(16, 1e4, 4.0, 32, f"low below 0, truncate {truncate}", truncate=truncate)
        one(16, 10.0, 4.0, 32, f"theta 10, high at the end, truncate {truncate}", truncate=truncate)
        one(64, 1e6, 8.0, 8192, f"equal betas, truncate {truncate}", truncate=truncate, beta_fast=8, beta_slow=8)
    # A long original length: the ramp ends past the last pair, clamped to d - 1.
    one(128, 1e4, 8.0, 131072, "end past the last pair")
    one(16, 10.0, 8.0, 600, "end past d - 1")
    # Tiny original lengths: both ends fall on the first pair, and 0.001 keeps the ramp finite; or high falls below low.
    for original in (4, 6):
        note = "both ends at 0" if original == 6 else "high below low"
        one(64, 1e4, 4.0, original, note)
        one(64, 1e4, 4.0, original, f"{note}, not rounded", truncate=False)
    for attention in (0, 0.0, 1, 0.5, 1.2076, 2.0):
        one(128, 1e6, 4.0, 32768, f"attention_factor {attention!r}", attention_factor=attention)
    one(128, 1e6, 4.0, 32768, "attention_factor null", attention_factor=None)
    one(128, 1e6, 4.0, 32768, "attention_factor over mscale", attention_factor=1.5, mscale=0.5, mscale_all_dim=1.0)
    for mscale, all_dim in ((1.0, 1.0), (0.707, 0.707), (0.707, 1.0), (1.0, 0.707), (2, 1), (1.0, 0), (0, 1.0), (1.0, None),
                            (None, 1.0), (None, None)):
        one(64, 1e4, 40.0, 4096, f"mscale {mscale} / {all_dim}", mscale=mscale, mscale_all_dim=all_dim)
    one(64, 1e4, 40.0, 4096, "mscale alone", mscale=0.707)
    one(64, 1e4, 40.0, 4096, "mscale_all_dim alone", mscale_all_dim=0.707)
    one(64, 1e4, 1.0, 4096, "mscale pair at factor 1", mscale=0.707, mscale_all_dim=1.0)
    for fast, slow in ((16, 2), (64, 0.5), (32.0, 1.0), (0, 0), (None, None), (0, None), (1, 32), (100, 1)):
        one(128, 1e4, 8.0, 4096, f"betas {fast} {slow}", beta_fast=fast, beta_slow=slow)
    one(128, 1e6, None, 32768, "factor null", most=131072)
    one(128, 1e6, None, 32768, "factor null, not longer", most=32768)
    one(128, 1e6, None, 32768, "factor null and mscale pair", most=131072, mscale=0.5, mscale_all_dim=0.8)
    one(128, 1e6, 4.0, 32768, "factor disagrees with the lengths", most=65536)
    given = width(128, max_position_embeddings=131072, rope_theta=1e6,
                  rope_scaling={"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768})
    case("qwen2", 128, given, note="version 4 keys")
    given = width(128, max_position_embeddings=16384, rope_theta=1e4, rope_scaling={"rope_type": "yarn", "factor": 4.0})
    case("llama", 128, given, note="original length left out: the maximum")
    for model_type, mscale in (("deepseek_v3", 1.0), ("deepseek_v3", 0.707)):
        case(model_type, 64, {"qk_rope_head_dim": 64, "max_position_embeddings": 163840, "rope_parameters": parameters(
            "yarn", 1e4, factor=40.0, original_max_position_embeddings=4096, beta_fast=32, beta_slow=1, mscale=mscale,
            mscale_all_dim=mscale)}, note=f"latent attention, mscale {mscale}")
    case("ministral3", 128, {}, note="class defaults")
    case("mistral4", 128, {"head_dim": 128, "qk_rope_head_dim": 64}, note="class defaults")


def llama3():
    def one(dim, theta, factor, original, note, model_type="llama", low=1.0, high=4.0):
        case(model_type, dim, width(dim, max_position_embeddings=131072, rope_parameters=parameters(
            "llama3", theta, factor=factor, original_max_position_embeddings=original, low_freq_factor=low,
            high_freq_factor=high)), note=note)

    one(128, 5e5, 8.0, 8192, "Llama 3.1")
    one(64, 5e5, 32.0, 8192, "Llama 3.2 1B")
    one(128, 5e5, 32.0, 8192, "Llama 3.2 3B")
    one(128, 12e6, 8.0, 8192, "Apertus", "apertus")
    for dim in (16, 32, 80, 96, 256):
        one(dim, 5e5, 8.0, 8192, "x8")
        one(dim, 1e4, 32.0, 2048, "theta 1e4 x32")
    one(128, 5e5, 1.0, 8192, "x1")
    one(128, 5e5, 8.0, 8192, "low 2 high 16", low=2.0, high=16.0)
    one(128, 5e5, 8.0, 8192, "low 1 high 1", low=1.0, high=1.0)
    one(128, 5e5, 8.0, 8192, "low 0.5 high 100", low=0.5, high=100.0)
    one(128, 5e5, 8.0, 8, "every pair slow")
    one(16, 10.0, 8.0, 1 << 20, "every pair fast")
    # 16 channels, theta 1e4: the wavelengths are 2 pi 10^(i/2); an original length of 2 pi 100 falls on pair 4.
    one(16, 1e4, 8.0, 628, "a pair just outside the low boundary")
    one(16, 1e4, 8.0, 629, "a pair just inside the low boundary")
    one(16, 1e4, 8.0, 2513, "a pair just outside the high boundary")
    one(16, 1e4, 8.0, 2514, "a pair just inside the high boundary")


def longrope():
    def factors(pairs, top):
        return [round(1 + (top - 1) * (i / (pairs - 1)) ** 2, 4) for i in range(pairs)]

    def one(dim, note, lengths, model_type="phi3", original=4096, most=131072, theta=1e4, partial=None, **more):
        pairs = int(dim * (partial or 1)) // 2
        scaling = {"short_factor": factors(pairs, 1.1), "long_factor": factors(pairs, 64.8), **more}
        given = width(dim, max_position_embeddings=most)
        if model_type == "phi3":
            given.pop("head_dim")
            given |= {"original_max_position_embeddings": original, "pad_token_id": None}
            if partial:
                given["partial_rotary_factor"] = partial
        else:
            scaling["original_max_position_embeddings"] = original
        given["rope_parameters"] = parameters("longrope", theta, **scaling)
        case(model_type, dim, given, lengths=lengths, note=note)

    one(96, "Phi-3 shape", (1, 4096, 4097, 131072))
    one(128, "Phi-4-mini shape, partial 0.75", (4096, 4097), partial=0.75)
    one(64, "attention_factor", (4096, 4097), attention_factor=1.5)
    one(64, "attention_factor 0", (4097,), attention_factor=0.0)
    one(64, "factor 32", (4096, 4097), factor=32.0, model_type="llama")
    one(64, "factor 1", (4097,), factor=1.0, model_type="llama")
    one(64, "factor 0.5", (4097,), factor=0.5, model_type="llama")
    one(64, "maximum equals original", (4096,), most=4096)
    one(128, "original 8192", (8192, 8193), original=8192)
    one(80, "theta 1e6", (4096, 4097), theta=1e6, model_type="mistral")
    given = width(96, max_position_embeddings=131072, original_max_position_embeddings=4096, pad_token_id=None,
                  rope_scaling={"type": "su", "short_factor": factors(48, 1.1), "long_factor": factors(48, 64.8),
                                "original_max_position_embeddings": 4096})
    given.pop("head_dim")
    case("phi3", 96, given, lengths=(4096, 4097), note="version 4 keys, su")


def proportional():
    for dim, share in itertools.product((64, 128, 256, 512), (0.25, 0.5, 0.75, 1.0)):
        case("llama", dim, width(dim, rope_parameters=parameters("proportional", 1e6, partial_rotary_factor=share)),
             note=f"share {share:g}")
    for factor in (1.0, 2.0, 8.0):
        case("llama", 128, width(128, rope_parameters=parameters(
            "proportional", 1e4, partial_rotary_factor=0.5, factor=factor)), note=f"share 0.5 x{factor:g}")
    case("llama", 96, width(96, rope_parameters=parameters("proportional", 1e4)), note="share absent")
    # 0.3 of 32 channels is 9.6: int(9.6 // 2) = 4 pairs turn.
    case("llama", 32, width(32, rope_parameters=parameters("proportional", 1e4, partial_rotary_factor=0.3)), note="share 0.3")


def by_layer_type():
    layer_types = ["sliding_attention", "full_attention"]
    for layer_type in layer_types:
        gemma = {"head_dim": 256, "num_hidden_layers": 2, "layer_types": layer_types}
        case("gemma3_text", 256, gemma, layer_type=layer_type, note="class defaults")
        case("gemma3_text", 256, {**gemma, "rope_theta": 1e6, "rope_local_base_freq": 1e4, "max_position_embeddings": 131072,
                                  "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
             layer_type=layer_type, note="Gemma 3 27B, version 4 keys")
        case("gemma3_text", 256, {**gemma, "rope_parameters": {
            "sliding_attention": parameters("default", 1e4),
            "full_attention": parameters("yarn", 1e6, factor=4.0, original_max_position_embeddings=32768)}},
             layer_type=layer_type, note="yarn on full layers")
        for model_type, dim in (("olmo3", 128), ("modernbert", 64)):
            given = width(dim, num_hidden_layers=2)
            given["layer_types"] = layer_types
            if model_type == "modernbert":
                for key in ("head_dim", "num_key_value_heads"):
                    given.pop(key)
            case(model_type, dim, given, layer_type=layer_type, note="class defaults")
        case("olmo3", 128, {**width(128, num_hidden_layers=2), "layer_types": layer_types, "max_position_embeddings": 65536,
                            "rope_parameters": {"sliding_attention": parameters("default", 5e5),
                                                "full_attention": parameters(
                                                    "yarn", 5e5, factor=8.0, original_max_position_embeddings=8192,
                                                    attention_factor=1.2079441541679836, beta_fast=32, beta_slow=1)}},
             layer_type=layer_type, note="Olmo 3, long")
        case("gemma4_text", 512 if layer_type == "full_attention" else 256,
             {"num_hidden_layers": 2, "layer_types": layer_types}, layer_type=layer_type, note="class defaults")
        case("laguna", 128, {"num_hidden_layers": 2, "layer_types": layer_types}, layer_type=layer_type, note="class defaults")


def rotation():
    """q rotated by the models' own functions, in float64, from cos and sin that numpy made."""
    def functions(folder):
        return importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")

    rng = np.random.default_rng(7)
    positions = np.array([0, 1, 2, 5, 100, 4095], dtype=np.float64)
    out = []
    for folder, layout, head_dim, share in (
        ("llama", "half", 16, 1.0), ("gpt_oss", "half", 16, 1.0), ("gemma4", "half", 16, 1.0),
        ("gpt_neox", "half", 16, 0.25), ("glm4", "interleaved", 16, 0.5), ("cohere", "interleaved", 16, 1.0),
        ("llama4", "interleaved", 16, 1.0), ("deepseek_v3", "interleaved", 16, 1.0),
    ):
        module = functions(folder)
        dim = int(head_dim * share)
        angles = positions[:, None] * 10000.0 ** (-np.arange(0, dim, 2) / dim)
        cos, sin = torch.tensor(np.cos(angles))[None], torch.tensor(np.sin(angles))[None]  # [1, T, P]
        # Some of them cast q to float32: it has few bits, so that nothing is lost and the products stay in float64.
        q = torch.tensor(np.round(rng.uniform(-2, 2, (1, 1, len(positions), head_dim)) * 64) / 64)  # [B, H, T, D]
        if folder == "llama4":
            turned = module.apply_rotary_emb(q.transpose(1, 2), q.transpose(1, 2), torch.complex(cos, sin))[0].transpose(1, 2)
        elif folder == "gpt_oss":
            turned = module.apply_rotary_pos_emb(q, q, cos, sin)[0]
        elif folder == "deepseek_v3":
            wide = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
            turned = module.apply_rotary_pos_emb_interleave(q, q, *wide)[0]
        elif folder == "cohere":
            wide = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
            turned = module.apply_rotary_pos_emb(q, q, *wide)[0]
        elif folder == "gemma4":
            turned = module.apply_rotary_pos_emb(q, torch.cat((cos, cos), -1), torch.cat((sin, sin), -1))
        else:
            turned = module.apply_rotary_pos_emb(q, q, torch.cat((cos, cos), -1), torch.cat((sin, sin), -1))[0]
        out.append({
            "name": folder, "layout": layout, "headDim": head_dim, "rotaryDim": dim, "ropeTheta": 10000,
            # DeepSeek reads interleaved channels and writes half ones: the same scores, other rows.
            "outputLayout": "half" if folder == "deepseek_v3" else layout,
            "vectors": [row.tolist() for row in q[0, 0]],
            "rotated": [row.tolist() for row in turned[0, 0]],
        })
    return {"positions": [int(p) for p in positions], "rows": out}


def phimoe():
    """PhiMoE recomputes its frequencies without the length: the short list at every length, but the long magnitude."""
    pairs = 16
    short, long = [1.0 + i / 64 for i in range(pairs)], [2.0 + i for i in range(pairs)]
    out = []
    for length in (4096, 4097):
        config = CONFIG_MAPPING["phimoe"](**{"hidden_size": 128, "num_attention_heads": 4, "rope_parameters": parameters(
            "longrope", 1e4, short_factor=short, long_factor=long, short_mscale=1.25, long_mscale=1.5,
            original_max_position_embeddings=4096)})
        cos, sin = (t[0, 0, :pairs].double().numpy() for t in
                    rotary_class("phimoe", config)(config)(torch.zeros(1, 2, 4), torch.tensor([[1, length - 1]])))
        out.append({"sequenceLength": length, "turnedAtPosition1": float32_list(np.arctan2(sin, cos)),
                    "magnitude": float(f"{float(np.hypot(sin, cos).mean()):.6f}")})
    return {"headDim": 32, "maxPositionEmbeddings": 131072, "shortFactor": short, "longFactor": long, "shortMscale": 1.25,
            "longMscale": 1.5, "originalMaxPositionEmbeddings": 4096, "ropeTheta": 1e4, "calls": out}


def main():
    for part in (plain, partial, linear, dynamic, yarn, llama3, longrope, proportional, by_layer_type):
        part()
    made_by = {
        "generator": "reference/rope_fixtures.py",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "mpmath": mpmath.__version__,
    }
    write("rope-transformers.json", {**made_by, "rows": rows})
    write("rope-rotation.json", {**made_by, "numpy": np.__version__, **rotation(), "phimoe": phimoe()})
    beyond = [row for row in rows if "exact" in row]
    print(f"{len(rows)} rows, {len(beyond)} beyond {PARITY:g} in float32")
    for row in sorted(beyond, key=lambda row: -row["float32Error"])[:12]:
        print(f"  {row['float32Error']:.2e}  {row['name']}")


if __name__ == "__main__":
    main()

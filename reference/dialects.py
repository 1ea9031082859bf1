"""What engines compute for rotary configurations, by running their own code: writes test/fixtures/dialects.json.

Each row is a configuration, what an engine depends on beside it, and what the engine made of it: inverse frequencies
and magnitudes from its own classes, cos and sin at some positions where it gives them, or the error that it raised.

    pip download --no-deps -d wheels transformers==4.57.6 vllm==0.33.0 mlx-lm==0.32.2 exllamav2==0.3.2 exllamav3==1.6.5
    (unzip each into ENGINES/<name>)
    pip install "mlx[cpu]==0.32.4" llama-cpp-python==0.3.36
    python reference/dialects.py ENGINES [YARN]

transformers 5 is the installed one. Of the unpacked wheels only the files with rotary classes are executed, on stubs of
what else they import: nothing of them runs that needs a GPU. llama.cpp runs whole: a GGUF model of one layer is written
whose queries are (1, 0) in every pair, so the output of its first rope operation is its table. YARN is a checkout of
github.com/jquesnelle/yarn at 995db5b57, whose modules are plain torch.
"""

import argparse
import ctypes
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import logging
import math
import pathlib
import platform
import re
import sys
import tempfile
import types
from unittest.mock import MagicMock

import gguf
import numpy as np
import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from rope_exact import write

logging.disable(logging.WARNING)
torch.set_num_threads(1)

rows = []


def float32_list(values):
    return [float(str(v)) for v in np.asarray(values, dtype=np.float32).ravel()]


def camel(key):
    head, *rest = key.split("_")
    return head + "".join(part.capitalize() for part in rest)


def rope(kind, theta=1e4, **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


def row(dialect, name, head_dim, most, settings, context, **result):
    rows.append({
        "dialect": dialect, "name": name,
        "config": {"headDim": head_dim, "maxPositionEmbeddings": most,
                   "rope": {camel(k): v for k, v in settings.items()}},
        "context": context, **result,
    })


def attempt(make):
    """make's result, or the error that it raised."""
    try:
        return make()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:160]}


def ramp_list(pairs, top):
    return [round(1 + (top - 1) * (i / (pairs - 1)) ** 2, 4) for i in range(pairs)]


# The same configurations for every engine: head dimension, max_position_embeddings, settings, lengths.
COMMON = [
    ("plain", 64, 2048, rope("default", 5e5)),
    ("plain, width 80", 80, 2048, rope("default", 1e4)),
    ("partial 0.5", 64, 2048, rope("default", 1e4, partial_rotary_factor=0.5)),
    ("linear 4", 64, 8192, rope("linear", 1e4, factor=4.0)),
    ("dynamic 2", 64, 2048, rope("dynamic", 1e4, factor=2.0)),
    ("dynamic alpha", 128, 32768, rope("dynamic", 1e4, factor=1.0, alpha=1000.0)),
    ("yarn, Qwen2.5", 128, 131072, rope("yarn", 1e6, factor=4.0, original_max_position_embeddings=32768)),
    ("yarn, max not original times factor", 128, 40960,
     rope("yarn", 1e6, factor=4.0, original_max_position_embeddings=32768)),
    ("yarn, gpt-oss", 64, 131072, rope("yarn", 150000.0, factor=32.0, original_max_position_embeddings=4096,
                                       beta_fast=32.0, beta_slow=1.0, truncate=False)),
    ("yarn, DeepSeek-V3 rope half", 64, 163840,
     rope("yarn", 1e4, factor=40.0, original_max_position_embeddings=4096, mscale=1.0, mscale_all_dim=1.0)),
    ("yarn, mscale 0.707 / 1", 64, 163840,
     rope("yarn", 1e4, factor=40.0, original_max_position_embeddings=4096, mscale=0.707, mscale_all_dim=1.0)),
    ("yarn, mscale_all_dim alone", 64, 163840,
     rope("yarn", 1e4, factor=40.0, original_max_position_embeddings=4096, mscale_all_dim=0.707)),
    ("yarn, attention_factor", 64, 16384,
     rope("yarn", 1e4, factor=4.0, original_max_position_embeddings=4096, attention_factor=1.5)),
    ("yarn, betas 64 / 2", 64, 16384,
     rope("yarn", 1e4, factor=4.0, original_max_position_embeddings=4096, beta_fast=64.0, beta_slow=2.0)),
    ("yarn, betas reversed", 64, 16384,
     rope("yarn", 1e4, factor=4.0, original_max_position_embeddings=4096, beta_fast=1.0, beta_slow=32.0)),
    ("yarn, beta_fast 0", 64, 16384,
     rope("yarn", 1e4, factor=4.0, original_max_position_embeddings=4096, beta_fast=0.0)),
    ("yarn, betas null", 64, 16384,
     rope("yarn", 1e4, factor=4.0, original_max_position_embeddings=4096, beta_fast=None, beta_slow=None)),
    ("yarn, factor null", 64, 16384, rope("yarn", 1e4, factor=None, original_max_position_embeddings=4096)),
    ("llama3, 3.1", 128, 131072, rope("llama3", 5e5, factor=8.0, original_max_position_embeddings=8192,
                                      low_freq_factor=1.0, high_freq_factor=4.0)),
    ("llama3, 3.2 1B", 64, 131072, rope("llama3", 5e5, factor=32.0, original_max_position_embeddings=8192,
                                        low_freq_factor=1.0, high_freq_factor=4.0)),
    ("longrope, Phi-3 shape", 96, 131072,
     rope("longrope", 1e4, original_max_position_embeddings=4096, short_factor=ramp_list(48, 1.1),
          long_factor=ramp_list(48, 64.8))),
    ("longrope, attention_factor and factor", 64, 131072,
     rope("longrope", 1e4, original_max_position_embeddings=4096, short_factor=ramp_list(32, 1.1),
          long_factor=ramp_list(32, 64.8), attention_factor=1.5, factor=16.0)),
    ("longrope, own magnitudes", 64, 131072,
     rope("longrope", 1e4, original_max_position_embeddings=4096, short_factor=ramp_list(32, 1.1),
          long_factor=ramp_list(32, 64.8), short_mscale=1.25, long_mscale=1.5)),
    ("proportional 0.25", 128, 131072, rope("proportional", 1e6, partial_rotary_factor=0.25)),
    ("proportional 0.5 x8", 128, 131072, rope("proportional", 1e6, partial_rotary_factor=0.5, factor=8.0)),
    ("proportional 0.3 of 32: an odd number of channels", 32, 2048,
     rope("proportional", 1e4, partial_rotary_factor=0.3)),
    ("ntk 4", 64, 2048, rope("ntk", 1e4, factor=4.0)),
]


# transformers 5, the installed one: real configurations and classes.
def transformers_5():
    def made(model_type, given, length, layer_type=None, before=()):
        def make():
            config = CONFIG_MAPPING[model_type](**given)
            folder = type(config).__module__.split(".")[-2]
            module = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
            name = type(config).__name__.removesuffix("Config") + "RotaryEmbedding"
            cls = getattr(module, name, None) or getattr(module, name.replace("Text", ""))
            embedding = cls(config)
            more = (layer_type,) if layer_type else ()
            for past in (*before, length):
                cos, sin = embedding(torch.zeros(1, 2, 4), torch.tensor([[1, past - 1]]), *more)
            half = cos.shape[-1] // 2
            turned = np.arctan2(sin[0, 0, :half].double().numpy(), cos[0, 0, :half].double().numpy())
            size = np.hypot(sin[0, 0, :half].double().numpy(), cos[0, 0, :half].double().numpy())
            prefix = f"{layer_type}_" if layer_type else ""
            stored = getattr(embedding, f"{prefix}inv_freq").double().numpy()
            # PhiMoE's stored frequencies are not the ones that it uses.
            used = turned if folder == "phimoe" else stored
            np.testing.assert_allclose(turned, used, atol=1e-6)
            attention = float(getattr(embedding, f"{prefix}attention_scaling"))
            if folder == "phimoe":
                attention = float(f"{float(size.mean()):.6g}")
            np.testing.assert_allclose(size, attention, rtol=1e-6)
            out = {"inverseFrequencies": float32_list(used), "attentionFactor": attention}
            latent = [c for n, c in inspect.getmembers(module, inspect.isclass)
                      if re.fullmatch(r"Deepseek\w*(V2|V3)Attention", n)]
            if latent:
                built = latent[0](config, 0)
                out["softmaxFactor"] = built.scaling * config.qk_head_dim ** 0.5
            return out
        return attempt(make)

    width = lambda dim: {"hidden_size": 2 * dim, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": dim,
                         "num_hidden_layers": 2}
    for name, dim, most, settings in COMMON:
        if "partial_rotary_factor" in settings and settings["rope_type"] == "default":
            continue  # below, by class
        for length in ((100, 3000) if settings["rope_type"] == "dynamic" else (100, 5000)):
            given = {**width(dim), "max_position_embeddings": most, "rope_parameters": settings}
            model = "hunyuan_v1_dense" if "alpha" in settings else "llama"
            row("transformers-5", name, dim, most, settings, {"sequenceLength": length, "modelType": model},
                **made(model, given, length))
    for model in ("llama", "glm4", "stablelm", "qwen3", "phi"):
        settings = rope("default", 1e4, partial_rotary_factor=0.5)
        given = {**width(64), "max_position_embeddings": 2048, "rope_parameters": settings}
        row("transformers-5", f"{model}: partial 0.5", 64, 2048, settings, {"sequenceLength": 100, "modelType": model},
            **made(model, given, 100))
    settings = rope("dynamic", 1e4, factor=4.0)
    for length in (48, 33, 32, 31):
        given = {**width(64), "max_position_embeddings": 32, "rope_parameters": settings}
        row("transformers-5", "dynamic after a call of 64", 64, 32, settings,
            {"sequenceLength": length, "modelType": "llama", "previousLength": 64}, **made("llama", given, length, before=(64,)))
    settings = rope("yarn", 1e4, factor=4.0, original_max_position_embeddings=4096, truncate=False)
    given = {**width(64), "max_position_embeddings": 16384, "layer_types": ["sliding_attention", "full_attention"],
             "rope_parameters": {"sliding_attention": rope("default"), "full_attention": settings}}
    row("transformers-5", "nested truncate false", 64, 16384, settings,
        {"sequenceLength": 100, "modelType": "olmo3", "nested": True}, **made("olmo3", given, 100, "full_attention"))
    moe = dict(COMMON[[n for n, *_ in COMMON].index("longrope, own magnitudes")][3])
    for length in (4096, 4097):
        given = {"hidden_size": 128, "num_attention_heads": 2, "rope_parameters": moe, "max_position_embeddings": 131072}
        row("transformers-5", "PhiMoE", 64, 131072, moe, {"sequenceLength": length, "modelType": "phimoe"},
            **made("phimoe", given, length))
    phi3 = dict(COMMON[[n for n, *_ in COMMON].index("longrope, Phi-3 shape")][3], original_max_position_embeddings=8192)
    given = {"hidden_size": 192, "num_attention_heads": 2, "rope_parameters": dict(phi3), "max_position_embeddings": 131072,
             "pad_token_id": None}
    row("transformers-5", "Phi-3, original length inside alone", 96, 131072, phi3,
        {"sequenceLength": 5000, "modelType": "phi3", "originalLengthAtTopLevel": False}, **made("phi3", given, 5000))
    for name in ("yarn, DeepSeek-V3 rope half", "yarn, mscale 0.707 / 1", "yarn, factor null"):
        _, dim, most, settings = next(c for c in COMMON if c[0] == name)
        settings = dict(settings, **({"mscale_all_dim": 1.0} if settings["factor"] is None else {}))
        for model in ("deepseek_v3",):
            given = {"qk_rope_head_dim": dim, "qk_nope_head_dim": 16, "hidden_size": 64, "num_attention_heads": 2,
                     "num_key_value_heads": 2, "q_lora_rank": 16, "kv_lora_rank": 16, "v_head_dim": 16,
                     "max_position_embeddings": most, "rope_parameters": settings}
            row("transformers-5", f"{model}: {name}", dim, most, settings, {"sequenceLength": 100, "modelType": model},
                **made(model, given, 100))


def classes():
    """model_type of the classes whose default frequencies read partial_rotary_factor, and of those whose attention
    multiplies the softmax scale by m(factor, mscale_all_dim) squared."""
    honour, softmax = [], []
    for model_type, cls in CONFIG_MAPPING.items():
        folder = cls.__module__.split(".")[-2]
        try:
            module = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
        except Exception:
            continue
        name = cls.__name__.removesuffix("Config") + "RotaryEmbedding"
        embedding = getattr(module, name, None) or getattr(module, name.replace("Text", ""), None)
        if hasattr(module, "yarn_apply_mscale") and embedding is not None:
            softmax.append(model_type)
        if embedding is None or not hasattr(embedding, "compute_default_rope_parameters"):
            continue
        if "partial_rotary_factor" in inspect.getsource(embedding.compute_default_rope_parameters):
            honour.append(model_type)
    return sorted(honour), sorted(softmax)


# transformers 4: its modeling_rope_utils.py alone, on configurations with the attributes that it reads.
def transformers_4(folder):
    package = types.ModuleType("tf4")
    package.__path__ = []
    sys.modules["tf4"] = package
    configuration = types.ModuleType("tf4.configuration_utils")
    configuration.PretrainedConfig = object
    utils = types.ModuleType("tf4.utils")
    utils.is_torch_available = lambda: True
    utils.logging = types.SimpleNamespace(get_logger=lambda name: MagicMock())
    sys.modules |= {"tf4.configuration_utils": configuration, "tf4.utils": utils}
    spec = importlib.util.spec_from_file_location("tf4.rope", folder / "transformers" / "modeling_rope_utils.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    class Embedding(torch.nn.Module):
        """What the models' rotary classes are in version 4: the constructor's state around rope_init_fn."""

        def __init__(self, config):
            super().__init__()
            self.config, self.rope_type = config, config.rope_scaling["rope_type"]
            self.rope_init_fn = module.ROPE_INIT_FUNCTIONS[self.rope_type]
            self.max_seq_len_cached = self.original_max_seq_len = config.max_position_embeddings
            inverse, self.attention_scaling = self.rope_init_fn(config, None)
            self.register_buffer("inv_freq", inverse, persistent=False)
            self.original_inv_freq = self.inv_freq

        @module.dynamic_rope_update
        def forward(self, x, position_ids):
            return self.inv_freq, self.attention_scaling

    def made(dim, most, settings, length, top, before=()):
        def make():
            inner = {k: v for k, v in settings.items() if k not in ("rope_theta", "partial_rotary_factor")}
            given = {"head_dim": dim, "hidden_size": 2 * dim, "num_attention_heads": 2, "max_position_embeddings": most,
                     "rope_theta": settings["rope_theta"], "rope_scaling": inner}
            if "partial_rotary_factor" in settings:
                given["partial_rotary_factor"] = settings["partial_rotary_factor"]
            if top and "original_max_position_embeddings" in inner:
                given["original_max_position_embeddings"] = inner["original_max_position_embeddings"]
            embedding = Embedding(types.SimpleNamespace(**given))
            for past in (*before, length):
                inverse, attention = embedding(torch.zeros(1), torch.tensor([[0, past - 1]]))
            return {"inverseFrequencies": float32_list(inverse), "attentionFactor": float(attention)}
        return attempt(make)

    for name, dim, most, settings in COMMON:
        if "alpha" in settings:
            continue
        longrope = settings["rope_type"] == "longrope"
        lengths = (100, 3000) if settings["rope_type"] == "dynamic" else (100, 5000)
        for length in lengths:
            row("transformers-4", name, dim, most, settings, {"sequenceLength": length},
                **made(dim, most, settings, length, longrope))
        if longrope:
            for length in (5000, 131073):
                row("transformers-4", f"{name}, original length inside alone", dim, most, settings,
                    {"sequenceLength": length, "originalLengthAtTopLevel": False}, **made(dim, most, settings, length, False))
    settings = rope("dynamic", 1e4, factor=4.0)
    for length in (48, 32, 31):
        row("transformers-4", "dynamic after a call of 64", 64, 32, settings,
            {"sequenceLength": length, "previousLength": 64}, **made(64, 32, settings, length, False, (64,)))


# vLLM: its rotary_embedding package, on stubs of the rest of vllm.
class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, real):
        self.real = real

    def find_spec(self, name, path=None, target=None):
        if name == "vllm" or (name.startswith("vllm.") and not name.startswith(self.real)):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__spec__, module.__path__, module.__name__ = spec, [], spec.name
        return module

    def exec_module(self, module):
        pass


def vllm(folder):
    real = "vllm.model_executor.layers.rotary_embedding"
    sys.meta_path.insert(0, Stubs(real))
    for name in ("vllm", "vllm.model_executor", "vllm.model_executor.layers"):
        importlib.import_module(name)

    class CustomOp(torch.nn.Module):
        def __init__(self, *a, **k):
            super().__init__()

        @staticmethod
        def register(name, **_):
            return lambda cls: cls

        @classmethod
        def enabled(cls):
            return False

    op = importlib.import_module("vllm.model_executor.custom_op")
    op.CustomOp = op.PluggableLayer = CustomOp
    admitted = {}
    config = importlib.import_module("vllm.config")
    config.get_current_vllm_config = lambda: types.SimpleNamespace(
        model_config=types.SimpleNamespace(max_model_len=admitted["length"]))
    importlib.import_module("vllm._aiter_ops").rocm_aiter_ops.is_triton_rotary_embed_enabled = lambda: False
    where = folder / "vllm" / "model_executor" / "layers" / "rotary_embedding"
    spec = importlib.util.spec_from_file_location(real, where / "__init__.py", submodule_search_locations=[str(where)])
    package = importlib.util.module_from_spec(spec)
    sys.modules[real] = package
    spec.loader.exec_module(package)

    def made(dim, most, settings, context):
        def make():
            package._ROPE_DICT.clear()
            admitted["length"] = context.get("maxModelLen", settings.get("original_max_position_embeddings", most))
            kind = settings["rope_type"]
            given = dict(settings)
            if context.get("modelType") == "deepseek_v3":
                scaled = "deepseek_llama_scaling" if settings.get("attention_factor") == 1.0 else "deepseek_yarn"
                given["rope_type"] = scaled
            dtype = {"bfloat16": torch.bfloat16, "float32": torch.float32}[context.get("modelDtype", "bfloat16")]
            module = package.get_rope(dim, most, True, given, dtype)
            if kind == "longrope":
                table, inverse = module.long_short_cos_sin_cache, None
                first = module.original_max_position_embeddings if module.use_long_rope else 0
                table = table[first:] if module.use_long_rope else table[:module.original_max_position_embeddings]
                inverse = module._compute_inv_freq(module.long_factor if module.use_long_rope else module.short_factor)
                attention = module.long_mscale if module.use_long_rope else module.short_mscale
            else:
                table = module.cos_sin_cache
                attention = getattr(module, "mscale", 1.0)
                if "yarn" in given["rope_type"] or given["rope_type"] == "deepseek_llama_scaling":
                    inverse = module._compute_inv_freq(module.scaling_factor)
                elif kind == "dynamic":
                    inverse = None  # the base is local to the cache: angles at position 1 below
                else:
                    inverse = module._compute_inv_freq(module.base)
                    if kind == "linear":
                        inverse = inverse / settings["factor"]
            if inverse is None:
                package._ROPE_DICT.clear()
                wide = package.get_rope(dim, most, True, given, torch.float32).cos_sin_cache[1].double().numpy()
                inverse = np.arctan2(wide[len(wide) // 2:], wide[:len(wide) // 2])
            positions = [p for p in (0, 1, 17, 1000, 4095) if p < table.shape[0]]
            half = table.shape[-1] // 2
            picked = table[positions].float().numpy()
            return {"inverseFrequencies": float32_list(inverse), "attentionFactor": float(attention),
                    "tableLength": table.shape[0], "positions": positions,
                    "cos": float32_list(picked[:, :half]), "sin": float32_list(picked[:, half:])}
        return attempt(make)

    for name, dim, most, settings in COMMON:
        if "magnitudes" not in name and most > 40000 and settings["rope_type"] not in ("longrope", "yarn"):
            most = 8192  # a shorter table of the same frequencies
        contexts = [{"sequenceLength": 100}]
        if settings["rope_type"] == "longrope":
            contexts = [{"sequenceLength": 100, "maxModelLen": n} for n in (4096, 131072)] + [{"sequenceLength": 100}]
        elif name in ("plain", "yarn, Qwen2.5"):
            contexts.append({"sequenceLength": 100, "modelDtype": "float32"})
        for context in contexts:
            row("vllm", name, dim, most, settings, context, **made(dim, most, settings, context))
    for name in ("yarn, DeepSeek-V3 rope half", "yarn, mscale 0.707 / 1", "yarn, mscale_all_dim alone",
                 "yarn, attention_factor", "yarn, gpt-oss"):
        _, dim, most, settings = next(c for c in COMMON if c[0] == name)
        context = {"sequenceLength": 100, "modelType": "deepseek_v3"}
        row("vllm", f"deepseek_v3: {name}", dim, most, settings, context, **made(dim, most, settings, context))
    settings = rope("linear", 1e4, factor=4)
    out = made(64, 2048, settings, {})
    return {"linearWithIntegerFactor": out.get("error")}


# mlx-lm: its rope_utils.py, over mlx.
def mlx(folder):
    import mlx.core as mx

    mx.set_default_device(mx.cpu)
    spec = importlib.util.spec_from_file_location("mlx_rope", folder / "mlx_lm" / "models" / "rope_utils.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def made(dim, most, settings, length):
        def make():
            kind, partial = settings["rope_type"], settings.get("partial_rotary_factor", 1.0)
            dims = dim if kind == "proportional" else int(dim * partial)
            embedding = module.initialize_rope(dims, settings["rope_theta"], True, settings, most)
            if kind == "longrope":
                embedding_input = np.concatenate([np.ones(dims // 2), np.zeros(dims // 2)])  # half layout, whatever is asked
            else:
                embedding_input = np.tile([1.0, 0.0], dims // 2)
            positions = [p for p in (0, 1, 17, 1000, 4095) if p < length] if kind != "dynamic" else [length - 1]
            cos, sin = [], []
            for p in positions:
                x = mx.array(embedding_input.astype(np.float32))[None, None, None, :]
                out = np.array(embedding(x, offset=p))[0, 0, 0]
                cos.append(out[:dims // 2] if kind == "longrope" else out[0::2])
                sin.append(out[dims // 2:] if kind == "longrope" else out[1::2])
            attention = getattr(embedding, "mscale", getattr(embedding, "_scale", 1.0))
            result = {"attentionFactor": float(attention), "positions": positions,
                      "cos": float32_list(cos), "sin": float32_list(sin)}
            if hasattr(embedding, "_freqs"):
                slow = np.array(embedding._freqs)
                result["inverseFrequencies"] = float32_list(np.where(np.isinf(slow), 0, np.float32(1) / slow))
            elif 1 in positions:
                at = positions.index(1)
                result["turnedAtPosition1"] = float32_list(np.arctan2(sin[at].astype(float), cos[at].astype(float)))
            return result
        return attempt(make)

    for name, dim, most, settings in COMMON:
        for length in ((100, 3000) if settings["rope_type"] == "dynamic" else (5000,)):
            context = {"sequenceLength": length}
            row("mlx-lm", name, dim, most, settings, context, **made(dim, most, settings, length))


# exllamav2: rope.py, on a configuration as config.py fills it.
def exllamav2(folder):
    spec = importlib.util.spec_from_file_location("exl2_rope", folder / "exllamav2" / "rope.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def made(dim, most, settings, length):
        def make():
            kind = settings["rope_type"]
            original = settings.get("original_max_position_embeddings")
            cfg = types.SimpleNamespace(
                head_dim=dim, partial_rotary_factor=settings.get("partial_rotary_factor", 1.0), max_seq_len=length,
                scale_alpha_value=settings["factor"] if kind == "ntk" else 1.0,
                alt_rope_method={"longrope": "su", "llama3": "llama3", "yarn": "yarn"}.get(kind),
                original_max_seq_len=original, scale_long_factor=settings.get("long_factor"),
                scale_short_factor=settings.get("short_factor"), yarn_rope_factor=settings.get("factor"),
                yarn_rope_original_max_position_embeddings=original, l3_rope_factor=settings.get("factor"),
                l3_rope_low_freq_factor=settings.get("low_freq_factor"),
                l3_rope_high_freq_factor=settings.get("high_freq_factor"), l3_rope_original_max_position_embeddings=original,
                arch=types.SimpleNamespace(lm=types.SimpleNamespace(rope_freq_half=False)))
            inverse, attention = module.get_rope_params("cpu", cfg, settings["rope_theta"])
            if kind == "linear":
                inverse = inverse / settings["factor"]  # positions are divided by it, in device.py
            return {"inverseFrequencies": float32_list(inverse), "attentionFactor": float(attention)}
        return attempt(make)

    for name, dim, most, settings in COMMON:
        if "alpha" in settings or "odd" in name:
            continue
        for length in (4096, most):
            row("exllamav2", name, dim, most, settings, {"sequenceLength": 100, "maxModelLen": length},
                **made(dim, most, settings, length))


# exllamav3: util/rope.py, without its extension.
def exllamav3(folder):
    for name in ("exl3", "exl3.util"):
        package = types.ModuleType(name)
        package.__path__ = []
        sys.modules[name] = package
    sys.modules["exl3.ext"] = types.ModuleType("exl3.ext")
    sys.modules["exl3.ext"].exllamav3_ext = MagicMock()
    spec = importlib.util.spec_from_file_location("exl3.util.rope", folder / "exllamav3" / "util" / "rope.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["exl3.util.rope"] = module
    spec.loader.exec_module(module)

    def made(dim, most, settings, context):
        def make():
            model = context.get("modelType")
            given = dict(settings)
            if model == "ministral3":
                given["llama_4_scaling_beta"] = 0.1
            embedding = module.RoPE("cpu", module.RopeSettings(
                head_dim=dim, rope_theta=settings["rope_theta"], rope_scaling=given,
                partial_rotary_factor=settings.get("partial_rotary_factor", 1.0), max_position_embeddings=most,
                override_max_position_embeddings=context.get("maxModelLen") if model == "phi3" else None,
                yarn_mscale_ratio=model == "deepseek_v3"))
            result = {"inverseFrequencies": float32_list(embedding.inv_freq), "attentionFactor": float(embedding.attn_factor)}
            if model == "deepseek_v3":
                result["softmaxFactor"] = module.yarn_sm_scale_fold(given)
            return result
        return attempt(make)

    for name, dim, most, settings in COMMON:
        if "alpha" in settings:
            continue
        contexts = [{"sequenceLength": 100}]
        if settings["rope_type"] == "longrope":
            contexts += [{"sequenceLength": 100, "maxModelLen": n, "modelType": "phi3"} for n in (4096, 131072)]
        if settings.get("mscale_all_dim"):
            contexts += [{"sequenceLength": 100, "modelType": m} for m in ("deepseek_v3", "ministral3")]
        for context in contexts:
            row("exllamav3", name, dim, most, settings, context, **made(dim, most, settings, context))


# llama.cpp: models of one layer.
class LlamaCpp:
    def __init__(self):
        import llama_cpp.llama_cpp as low

        self.low = low
        self.silent = low.llama_log_callback(lambda level, text, user: None)
        low.llama_log_set(self.silent, None)
        low.llama_backend_init()
        libraries = pathlib.Path(low.__file__).parent / "lib"
        base = ctypes.CDLL(str(libraries / "libggml-base.so"))
        for name, kind in (("ggml_op_desc", ctypes.c_char_p), ("ggml_get_data", ctypes.c_void_p), ("ggml_nbytes", ctypes.c_size_t)):
            function = getattr(base, name)
            function.restype, function.argtypes = kind, [ctypes.c_void_p]
        base.ggml_version.restype = ctypes.c_char_p
        self.base, self.ggml = base, base.ggml_version().decode()

    @staticmethod
    def write(path, dim, most, theta, arch="llama", keys=(), tensors=None):
        width, writer = 2 * dim, gguf.GGUFWriter(path, arch)
        layers = 27 if arch == "deepseek2" else 1  # 27: the lite variant, without a low-rank query
        writer.add_context_length(most)
        writer.add_embedding_length(width)
        writer.add_block_count(layers)
        writer.add_feed_forward_length(8)
        writer.add_head_count(2)
        writer.add_head_count_kv(2)
        writer.add_layer_norm_rms_eps(0.0)
        writer.add_vocab_size(4)
        writer.add_rope_freq_base(theta)
        writer.add_tokenizer_model("no_vocab")
        for key, value in {"rope.dimension_count": dim, **dict(keys)}.items():
            add = {str: writer.add_string, int: writer.add_uint32, float: writer.add_float32}[type(value)]
            add(f"{arch}.{key}", value)
        zeros = lambda *shape: np.zeros(shape, np.float32)
        # Rows of ones stay ones under RMS normalisation, and width · (1/width) = 1: q and k are (1, 0) in every pair.
        query, channel = zeros(width, width), np.arange(width) % dim
        query[channel < dim // 2 if arch == "phi3" else channel % 2 == 0] = 1 / width
        block = {
            "attn_norm": np.ones(width, np.float32), "ffn_norm": np.ones(width, np.float32), "attn_q": query, "attn_k": query,
            "attn_v": zeros(width, width), "attn_output": zeros(width, width), "ffn_down": zeros(width, 8),
            "ffn_up": zeros(16 if arch == "phi3" else 8, width), **({} if arch == "phi3" else {"ffn_gate": zeros(8, width)}),
        }
        if arch == "deepseek2":
            # Latent attention of two heads, each with 8 channels that are not rotated before those that are.
            rank, still = 4, 8
            query = zeros(2 * (still + dim), width)
            channel = np.arange(len(query)) % (still + dim)
            query[(channel >= still) & (channel % 2 == 0)] = 1 / width
            latent = zeros(rank + dim, width)
            latent[:rank] = latent[rank::2] = 1 / width
            del block["attn_k"], block["attn_v"]
            block |= {"attn_q": query, "attn_kv_a_mqa": latent, "attn_kv_a_norm": np.ones(rank, np.float32),
                      "attn_kv_b": zeros(2 * 2 * still, rank), "attn_output": zeros(width, 2 * still)}
            for key, value in {"attention.key_length": still + dim, "attention.value_length": still, "attention.kv_lora_rank": rank,
                               "leading_dense_block_count": layers, "expert_feed_forward_length": 8,
                               "expert_shared_count": 0}.items():
                writer.add_uint32(f"{arch}.{key}", value)
        writer.add_tensor("token_embd.weight", np.ones((4, width), np.float32))
        writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
        for layer in range(layers):
            for name, value in block.items():
                writer.add_tensor(f"blk.{layer}.{name}.weight", value)
        for name, value in (tensors or {}).items():
            writer.add_tensor(name, np.asarray(value, np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def rotated(self, path, positions, n_ctx, flags):
        low, base = self.low, self.base
        parameters = low.llama_model_default_params()
        parameters.use_mmap = False
        model = low.llama_model_load_from_file(str(path).encode(), parameters)
        if not model:
            raise RuntimeError("the model did not load")
        settings = low.llama_context_default_params()
        settings.n_ctx, settings.n_batch, settings.n_ubatch = n_ctx, 8, 8
        settings.n_threads = settings.n_threads_batch = 1
        for key, value in flags.items():
            setattr(settings, key, value)
        seen = []

        def on_tensor(tensor, ask, user):
            if base.ggml_op_desc(tensor) in (b"FLASH_ATTN_EXT", b"SOFT_MAX"):
                # struct ggml_tensor: type, buffer, ne[4], nb[4], op, then op_params, whose first float is the scale.
                self.scale = ctypes.c_float.from_address(tensor + 84).value
                return True
            if base.ggml_op_desc(tensor) != b"ROPE":
                return not ask
            if not ask:
                count = base.ggml_nbytes(tensor) // 4
                pointer = ctypes.cast(base.ggml_get_data(tensor), ctypes.POINTER(ctypes.c_float))
                seen.append(np.ctypeslib.as_array(pointer, (count,)).copy())
            return True

        callback = low.ggml_backend_sched_eval_callback(on_tensor)
        settings.cb_eval = callback
        context = low.llama_init_from_model(model, settings)
        out = []
        for position in positions:
            low.llama_memory_clear(low.llama_get_memory(context), True)
            batch = low.llama_batch_init(1, 0, 1)
            batch.n_tokens, batch.token[0], batch.pos[0], batch.n_seq_id[0] = 1, 1, position, 1
            batch.seq_id[0][0], batch.logits[0] = 0, 1
            seen.clear()
            if low.llama_decode(context, batch) != 0:
                raise RuntimeError("decoding failed")
            low.llama_batch_free(batch)
            out.append(seen[0])
        low.llama_free(context)
        low.llama_model_free(model)
        return np.array(out)


# What the converter writes, restated from conversion/base.py, llama.py, phi.py, gemma.py and mistral3.py.
def converted(dim, most, settings, model):
    kind, keys, tensors, arch = settings["rope_type"], {}, {}, "llama"
    original, factor = settings.get("original_max_position_embeddings"), settings.get("factor")
    if kind == "linear":
        keys |= {"rope.scaling.type": "linear", "rope.scaling.factor": factor}
    elif kind == "yarn" and factor is not None:
        keys |= {"rope.scaling.type": "yarn", "rope.scaling.factor": factor, "rope.scaling.original_context_length": original}
        for key, name in (("attention_factor", "yarn_attn_factor"), ("beta_fast", "yarn_beta_fast"),
                          ("beta_slow", "yarn_beta_slow")):
            if settings.get(key) is not None:
                keys[f"rope.scaling.{name}"] = float(settings[key])
        if model == "ministral3":
            arch, keys["rope.scaling.yarn_log_multiplier"] = "mistral3", settings["mscale_all_dim"]
        if model == "deepseek_v3" and "mscale_all_dim" in settings:
            keys["rope.scaling.yarn_log_multiplier"] = 0.1 * settings["mscale_all_dim"]
    elif kind == "llama3":
        plain = 1.0 / (settings["rope_theta"] ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
        low, high = settings["low_freq_factor"], settings["high_freq_factor"]
        divisors = []
        for frequency in plain:
            wavelength = 2 * math.pi / frequency
            if wavelength < original / high:
                divisors.append(1)
            elif wavelength > original / low:
                divisors.append(factor)
            else:
                smooth = (original / wavelength - low) / (high - low)
                divisors.append(1 / ((1 - smooth) / factor + smooth))
        tensors["rope_freqs.weight"] = torch.tensor(divisors, dtype=torch.float32).numpy()
    elif kind == "longrope" and model == "phi3":
        arch = "phi3"
        scale = most / original
        keys |= {"rope.scaling.type": "longrope", "rope.scaling.original_context_length": original,
                 "attention.sliding_window": 0,
                 "rope.scaling.attn_factor": math.sqrt(1 + math.log(scale) / math.log(original)) if scale > 1 else 1.0}
        tensors |= {"rope_factors_long.weight": settings["long_factor"], "rope_factors_short.weight": settings["short_factor"]}
    elif kind == "longrope":
        keys["rope.scaling.type"] = "longrope"
    elif kind == "proportional":
        turning = int(dim * settings["partial_rotary_factor"] / 2)
        tensors["rope_freqs.weight"] = [1.0] * turning + [1e30] * (dim // 2 - turning)
    if model == "deepseek_v3":
        arch = "deepseek2"
    rotated = dim if kind == "proportional" else int(dim * settings.get("partial_rotary_factor", 1.0))
    if rotated != dim:
        keys["rope.dimension_count"] = rotated
    return arch, keys, tensors, rotated


def llama_cpp():
    engine = LlamaCpp()
    positions = [1, 17, 1000, 30000]
    flag_names = {"ropeScale": ("rope_freq_scale", lambda v: 1 / v), "ropeFreqBase": ("rope_freq_base", float),
                  "yarnOrigCtx": ("yarn_orig_ctx", int), "yarnExtFactor": ("yarn_ext_factor", float),
                  "yarnAttnFactor": ("yarn_attn_factor", float), "yarnBetaFast": ("yarn_beta_fast", float),
                  "yarnBetaSlow": ("yarn_beta_slow", float),
                  "ropeScaling": ("rope_scaling_type", lambda v: {"none": 0, "linear": 1, "yarn": 2}[v])}

    def made(dim, most, settings, context):
        def make():
            model, flags = context.get("modelType"), context.get("llamaCpp", {})
            arch, keys, tensors, rotated = converted(dim, most, settings, model)
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "model.gguf"
                theta = settings["rope_theta"]
                engine.write(path, dim, most, theta, arch, keys, tensors)
                values = {flag_names[k][0]: flag_names[k][1](v) for k, v in flags.items()}
                out = engine.rotated(path, positions, context.get("maxModelLen", 512), values)
            half = rotated // 2
            if arch == "deepseek2":
                out = out[:, 8:]
            cos, sin = (out[:, :half], out[:, dim // 2:dim // 2 + half]) if arch == "phi3" else (
                out[:, 0:rotated:2], out[:, 1:rotated:2])
            one = np.arctan2(sin[0].astype(float), cos[0].astype(float))
            softmax = {"softmaxFactor": float(f"{engine.scale * (dim + 8) ** 0.5:.7g}")} if arch == "deepseek2" else {}
            return {**softmax, "turnedAtPosition1": float32_list(one),
                    "attentionFactor": float(f"{np.hypot(sin.astype(float), cos.astype(float)).mean():.7g}"),
                    "positions": positions, "cos": float32_list(cos), "sin": float32_list(sin)}
        return attempt(make)

    def add(name, dim, most, settings, context):
        row("llama.cpp", name, dim, most, settings, context, **made(dim, most, settings, context))

    for name, dim, most, settings in COMMON:
        kind = settings["rope_type"]
        if "alpha" in settings or kind == "ntk":
            continue
        if kind == "longrope":
            for model, length in (("phi3", 4096), ("phi3", 4352), ("llama", 4352)):
                add(name, dim, most, settings, {"sequenceLength": 100, "modelType": model, "maxModelLen": length})
        else:
            add(name, dim, most, settings,
                {"sequenceLength": 100, "modelType": "gemma4_text" if kind == "proportional" else "llama"})
        if settings.get("mscale_all_dim"):
            for model in ("ministral3", "deepseek_v3"):
                add(name, dim, most, settings, {"sequenceLength": 100, "modelType": model})
    _, dim, most, settings = next(c for c in COMMON if c[0] == "yarn, betas 64 / 2")
    add("Ministral 3: betas 64 / 2", dim, most, {**settings, "mscale": 1.0, "mscale_all_dim": 1.0},
        {"sequenceLength": 100, "modelType": "ministral3"})
    for settings in (rope("yarn", factor=40.0, original_max_position_embeddings=4096), rope("linear", factor=4.0)):
        add("DeepSeek without mscale_all_dim", 64, 163840, settings, {"sequenceLength": 100, "modelType": "deepseek_v3"})
    plain = rope("default")
    qwen = rope("yarn", 1e6, factor=4.0, original_max_position_embeddings=32768)
    for flags in ({"ropeScaling": "yarn", "ropeScale": 4, "yarnOrigCtx": 512},
                  {"ropeScaling": "yarn", "ropeScale": 4, "yarnOrigCtx": 512, "yarnAttnFactor": 2.0},
                  {"ropeScaling": "yarn", "ropeScale": 4, "yarnOrigCtx": 512, "yarnBetaFast": 64.0, "yarnBetaSlow": 2.0},
                  {"ropeScaling": "yarn", "ropeScale": 4, "yarnOrigCtx": 512, "yarnExtFactor": 0.5},
                  {"ropeScaling": "yarn", "ropeScale": 4, "yarnOrigCtx": 512, "yarnExtFactor": 0.0},
                  {"ropeScaling": "linear", "ropeScale": 4}, {"ropeScaling": "linear", "ropeScale": 4, "yarnAttnFactor": 2.0},
                  {"ropeScale": 4}, {"ropeScaling": "none", "ropeScale": 4}, {"ropeFreqBase": 41829.3659}):
        add(f"flags {json.dumps(flags)}", 64, 2048, plain, {"sequenceLength": 100, "modelType": "llama", "llamaCpp": flags})
    for flags in ({"ropeScaling": "none"}, {"ropeScale": 8}, {"yarnExtFactor": 0.0}, {"ropeScaling": "linear"}, {"yarnBetaFast": 0.0}):
        add(f"yarn file, flags {json.dumps(flags)}", 128, 131072, qwen,
            {"sequenceLength": 100, "modelType": "llama", "llamaCpp": flags})
    return engine.ggml


# YaRN's authors' modules.
def yarn_repository(folder):
    def load(name):
        spec = importlib.util.spec_from_file_location(name, folder / "scaled_rope" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, name)

    def made(kind, dim, most, settings, length, before=()):
        def make():
            theta, factor = settings["rope_theta"], settings.get("factor")
            original = settings.get("original_max_position_embeddings")
            divisor = 1.0
            if kind == "ntk-by-parts":
                module = load("LlamaPartNTKScaledRotaryEmbedding")(dim, most, theta, factor, original_max_position_embeddings=original)
            elif kind == "yarn":
                module = load("LlamaYaRNScaledRotaryEmbedding")(dim, most, theta, factor, original)
            elif kind == "dynamic-yarn":
                module = load("LlamaDynamicYaRNScaledRotaryEmbedding")(dim, most, theta, original)
            elif kind == "dynamic":
                module = load("LlamaDynamicScaledRotaryEmbedding")(dim, most, theta, factor)
            elif kind == "ntk":
                module = load("LlamaNTKScaledRotaryEmbedding")(dim, most, theta, factor)
            else:
                module = load("LlamaDynamicScaledRotaryEmbedding")(dim, most, theta)
                divisor = max(length, *before, most) / most
            for past in (*before, length):
                cos, sin = module(torch.zeros(1, 1, past, dim), seq_len=past)
            one = [t[0, 0, 1, :dim // 2].double().numpy() for t in (sin, cos)]
            inverse = module.inv_freq.double().numpy() / divisor
            np.testing.assert_allclose(np.arctan2(*one), inverse, atol=1e-6)
            return {"inverseFrequencies": float32_list(inverse), "attentionFactor": float(getattr(module, "mscale", 1.0))}
        return attempt(make)

    base = {"original_max_position_embeddings": 2048}
    for settings, calls in (
        (rope("ntk-by-parts", 1e4, factor=8.0, **base), ((100, ()),)),
        (rope("ntk-by-parts", 5e5, factor=4.0, original_max_position_embeddings=8192), ((100, ()),)),
        (rope("yarn", 1e4, factor=8.0, **base), ((100, ()),)),
        (rope("ntk", 1e4, factor=4.0), ((100, ()),)),
        (rope("dynamic", 1e4, factor=2.0), ((100, ()), (3000, ()), (100, (3000,)))),
        (rope("dynamic-linear", 1e4, **base), ((100, ()), (3000, ()), (100, (3000,)))),
        (rope("dynamic-yarn", 1e4, **base), ((100, ()), (3000, ()), (100, (3000,)))),
    ):
        for length, before in calls:
            context = {"sequenceLength": length, **({"previousLength": before[0]} if before else {})}
            row("yarn-repository", settings["rope_type"], 128, 2048, settings, context,
                **made(settings["rope_type"], 128, 2048, settings, length, before))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engines", type=pathlib.Path, help="folder with the unpacked wheels")
    parser.add_argument("yarn", type=pathlib.Path, help="checkout of jquesnelle/yarn")
    parser.add_argument("--site", help="a further folder with installed packages (mlx, llama_cpp)")
    arguments = parser.parse_args()
    if arguments.site:
        sys.path.append(arguments.site)
    folder = arguments.engines
    transformers_5()
    honour, softmax = classes()
    transformers_4(folder / "transformers4")
    observed = vllm(folder / "vllm")
    mlx(folder / "mlx_lm")
    exllamav2(folder / "exllamav2")
    exllamav3(folder / "exllamav3")
    ggml = llama_cpp()
    yarn_repository(arguments.yarn)
    from importlib.metadata import version

    write("dialects.json", {
        "generator": "reference/dialects.py", "python": platform.python_version(), "numpy": np.__version__,
        "torch": torch.__version__,
        "engines": {
            "transformers-5": transformers.__version__, "transformers-4": "4.57.6", "vllm": "0.33.0", "mlx-lm": "0.32.2",
            "mlx": version("mlx"), "exllamav2": "0.3.2", "exllamav3": "1.6.5", "yarn-repository": "995db5b57",
            "llama.cpp": f"llama-cpp-python {version('llama-cpp-python')}, ggml {ggml}",
        },
        "honoursPartialRotary": honour, "scalesSoftmax": softmax, "vllm": observed, "rows": rows,
    })
    for name in dict.fromkeys(r["dialect"] for r in rows):
        own = [r for r in rows if r["dialect"] == name]
        print(f"{name}: {len(own)} rows, {sum('error' in r for r in own)} errors")


if __name__ == "__main__":
    main()

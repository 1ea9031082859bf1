"""What vLLM 0.11.0 and SGLang compute for rotary configurations: writes test/fixtures/dialects-lineage.json.

SGLang's rotary classes were taken from vLLM's before those changed; both have get_rope with the same arguments. The rows
are as those of dialects.py, for the same configurations.

    pip download --no-deps -d wheels sglang==0.5.23        (unzip into ENGINES/sglang)
    pip download --no-deps --no-binary vllm vllm==0.11.0   (unpack into ENGINES/vllm-0.11; building it is not needed)
    python reference/dialects_lineage.py ENGINES

Only the files with rotary classes are executed, on stubs of what else they import.
"""

import argparse
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import platform
import sys
from unittest.mock import MagicMock

import torch

from dialects import COMMON, attempt, float32_list, row, rows
from rope_exact import write

VLLM = "vllm.model_executor.layers.rotary_embedding"
SGLANG = "sglang.srt.layers.rotary_embedding"


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, top, real):
        self.top, self.real = top, real

    def find_spec(self, name, path=None, target=None):
        if name == self.top or (name.startswith(self.top + ".") and not name.startswith(self.real)):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__spec__, module.__path__, module.__name__ = spec, [], spec.name
        return module

    def exec_module(self, module):
        pass


class Op(torch.nn.Module):
    def __init__(self, *a, **k):
        super().__init__()

    @staticmethod
    def register(*_, **__):
        return lambda cls: cls

    @classmethod
    def enabled(cls):
        return False

    def __getattr__(self, name):
        if name in ("_forward_method", "forward_native"):
            return None
        return super().__getattr__(name)


def load(real, where):
    spec = importlib.util.spec_from_file_location(real, where / "__init__.py", submodule_search_locations=[str(where)])
    package = importlib.util.module_from_spec(spec)
    sys.modules[real] = package
    spec.loader.exec_module(package)
    return package


def vllm(folder):
    sys.meta_path.insert(0, Stubs("vllm", VLLM))
    for name in ("vllm", "vllm.model_executor", "vllm.model_executor.layers"):
        importlib.import_module(name)
    importlib.import_module("vllm.model_executor.custom_op").CustomOp = Op
    importlib.import_module("vllm.platforms").current_platform.device_type = "cpu"
    return load(VLLM, folder.joinpath(*VLLM.split(".")))


def sglang(folder):
    sys.meta_path.insert(0, Stubs("sglang", SGLANG))
    for name in ("sglang", "sglang.srt", "sglang.srt.layers"):
        importlib.import_module(name)
    importlib.import_module("sglang.kernels.fused_op").BaseFusedOp = Op
    utils = importlib.import_module("sglang.srt.utils")
    for name in ("is_cuda", "is_hip", "is_npu", "is_cpu", "is_xpu", "is_musa", "is_mps", "cpu_has_amx_support"):
        setattr(utils, name, lambda: False)
    utils.get_bool_env_var = lambda *_: False
    utils.get_device = lambda: "cpu"
    importlib.import_module("sglang.srt.runtime_context").publish_role = lambda: None
    utils.get_compiler_backend = lambda *_, **__: "eager"
    load(SGLANG, folder.joinpath(*SGLANG.split(".")))
    return importlib.import_module(SGLANG + ".factory")


def made(package, dim, most, settings, context):
    def make():
        package._ROPE_DICT.clear()
        given = {k: v for k, v in settings.items() if k not in ("rope_theta", "partial_rotary_factor")}
        kind, base = settings["rope_type"], settings["rope_theta"]
        if context.get("modelType") == "deepseek_v3":
            given["rope_type"] = "deepseek_yarn"
        partial = 1.0 if kind == "proportional" else settings.get("partial_rotary_factor", 1.0)
        rotated = int(dim * settings.get("partial_rotary_factor", 1.0)) if kind == "proportional" else dim
        dtype = {"bfloat16": torch.bfloat16, "float32": torch.float32}[context.get("modelDtype", "bfloat16")]

        def build(dtype):
            package._ROPE_DICT.clear()
            return package.get_rope(dim, rotated, most, base, True, dict(given), dtype, partial)

        module = build(dtype)
        first = 0
        if kind == "longrope":
            long = context["sequenceLength"] - 1 > module.original_max_position_embeddings
            first = module.original_max_position_embeddings if long else 0
            table = module.long_short_cos_sin_cache[first:]
            if not long:
                table = table[:module.original_max_position_embeddings]
            inverse = module._compute_inv_freq(module.long_factor if long else module.short_factor)
            attention = module.long_mscale if long else module.short_mscale
        else:
            table = module.cos_sin_cache
            attention = getattr(module, "mscale", 1.0)
            if "yarn" in given["rope_type"]:
                inverse = module._compute_inv_freq(module.scaling_factor)
            elif kind == "dynamic":
                # The base is local to the cache: angles at position 1 of a float32 table.
                wide = build(torch.float32).cos_sin_cache[1].double()
                inverse = torch.atan2(wide[len(wide) // 2:], wide[:len(wide) // 2])
            else:
                inverse = module._compute_inv_freq(module.base)
                if kind == "linear":
                    inverse = inverse / settings["factor"]
        positions = [p for p in (0, 1, 17, 1000, 4095) if p < table.shape[0]]
        half = table.shape[-1] // 2
        picked = table[positions].float().numpy()
        # SGLang adds rows where positions ask for them.
        length = {} if package.__name__.startswith("sglang") else {"tableLength": table.shape[0]}
        return {"inverseFrequencies": float32_list(inverse), "attentionFactor": float(attention), **length,
                "positions": positions, "cos": float32_list(picked[:, :half]), "sin": float32_list(picked[:, half:])}

    return attempt(make)


def run(dialect, package):
    for name, dim, most, settings in COMMON:
        if most > 40000 and settings["rope_type"] not in ("longrope", "yarn"):
            most = 8192  # a shorter table of the same frequencies
        lengths = (100, 5000) if settings["rope_type"] == "longrope" else (100,)
        contexts = [{"sequenceLength": n} for n in lengths]
        if name in ("plain", "yarn, Qwen2.5"):
            contexts.append({"sequenceLength": 100, "modelDtype": "float32"})
        for context in contexts:
            row(dialect, name, dim, most, settings, context, **made(package, dim, most, settings, context))
    for name in ("yarn, DeepSeek-V3 rope half", "yarn, mscale 0.707 / 1", "yarn, mscale_all_dim alone"):
        _, dim, most, settings = next(c for c in COMMON if c[0] == name)
        context = {"sequenceLength": 100, "modelType": "deepseek_v3"}
        row(dialect, f"deepseek_v3: {name}", dim, most, settings, context, **made(package, dim, most, settings, context))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engines", type=pathlib.Path)
    folder = parser.parse_args().engines
    run("vllm-0.11", vllm(folder / "vllm-0.11"))
    run("sglang", sglang(folder / "sglang"))
    write("dialects-lineage.json", {
        "generator": "reference/dialects_lineage.py", "python": platform.python_version(), "torch": torch.__version__,
        "engines": {"vllm-0.11": "0.11.0", "sglang": "0.5.23"}, "rows": rows,
    })
    for name in dict.fromkeys(r["dialect"] for r in rows):
        own = [r for r in rows if r["dialect"] == name]
        print(f"{name}: {len(own)} rows, {sum('error' in r for r in own)} errors")
        for r in own:
            if "error" in r:
                print("   ", r["name"], r["error"])


if __name__ == "__main__":
    main()

"""Writes test/fixtures/gguf-dequantize.json: blocks of random bits of every GGUF tensor type and what the gguf package
makes of them in float32; a safetensors file of every dtype that torch can save, and torch's float32 of it; SHA-256 of
tensors of two real checkpoints as the gguf package dequantises them.

Run by hand from the repository's root: python reference/gguf_dequantize.py [folder of the real checkpoints]
"""

import base64
import hashlib
import json
import platform
import sys
from pathlib import Path

import gguf
import numpy as np
import safetensors
import safetensors.torch
import torch
from gguf.quants import dequantize

OUT = Path(__file__).parent.parent / "test" / "fixtures" / "gguf-dequantize.json"
MODELS = Path(sys.argv[1]) if len(sys.argv) > 1 else Path.home() / ".cache" / "longhand" / "models"
Q = gguf.GGMLQuantizationType

# Where the float16 numbers of a block stand; their exponent is kept below infinity's.
HALVES = {
    "F16": [0], "BF16": [0],
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [], "NVFP4": [], "TQ1_0": [52], "TQ2_0": [64],
}  # fmt: skip


def random_bytes(seed: int, count: int) -> np.ndarray:
    """xorshift32, the low byte of each state: the test makes the same ones."""
    out = np.empty(count, dtype=np.uint8)
    state = seed
    for i in range(count):
        state ^= (state << 13) & 0xFFFFFFFF
        state ^= state >> 17
        state ^= (state << 5) & 0xFFFFFFFF
        out[i] = state & 255
    return out


def random_blocks(name: str, seed: int, elements: int) -> np.ndarray:
    block, size = gguf.GGML_QUANT_SIZES[Q[name]]
    blocks = random_bytes(seed, elements // block * size).reshape(-1, size)
    for at in HALVES[name]:
        # Bit 6 of the upper byte is the exponent's highest (of bfloat16 too): without it all numbers are below 2.
        # Half of the blocks keep it and lose the next bit, so that large scales occur as well.
        high = blocks[:, at + 1]
        odd = np.arange(len(high)) % 2 == 1
        blocks[:, at + 1] = np.where(odd, high & 0xDF, high & 0xBF)
    return blocks.reshape(1, -1)


def encode(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def sha256(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).view(np.uint8).data).hexdigest()


def kinds() -> list:
    rows = []
    for seed, name in enumerate(HALVES, 1):
        few = random_blocks(name, seed, 512)
        many = random_blocks(name, 1000 + seed, 65_536)
        values = dequantize(few, Q[name])
        all_values = dequantize(many, Q[name])
        assert values.dtype == np.float32
        if name != "MXFP4":
            assert np.isfinite(all_values).all()
        rows.append(
            {
                "kind": name,
                "type": int(Q[name]),
                "halves": HALVES[name],
                "blocks": encode(few),
                "float32": encode(values),
                "seed": 1000 + seed,
                "elements": 65_536,
                "sha256": sha256(all_values),
            }
        )
    return rows


def every_half() -> dict:
    """All 65,536 binary16 and bfloat16 numbers, bits of NaN left out (processors differ)."""
    bits = np.arange(65_536, dtype=np.uint16)
    out = {}
    for name, values in (
        ("F16", bits.view(np.float16).astype(np.float32)),
        ("BF16", dequantize(bits.view(np.uint8).reshape(1, -1), Q.BF16).ravel()),
    ):
        out[name] = {"nan": int(np.isnan(values).sum()), "sha256": sha256(values[~np.isnan(values)])}
    return out


def dtypes() -> dict:
    """A safetensors file by its own writer, and torch's conversions."""
    generator = torch.Generator().manual_seed(7)
    every_byte = torch.arange(256, dtype=torch.int16).to(torch.uint8)
    normal = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    tensors = {
        "f64": normal,
        "f32": normal.float(),
        "f16": normal.half(),
        "bf16": normal.bfloat16(),
        "i64": torch.tensor([-(2**40) - 3, -1, 0, 7, 2**53]),
        "i32": torch.tensor([-(2**31), -16777217, 0, 16777217, 2**31 - 1], dtype=torch.int32),
        "i16": torch.tensor([-32768, -1, 0, 32767], dtype=torch.int16),
        "i8": every_byte.view(torch.int8),
        "u8": every_byte,
        "u16": torch.tensor([0, 1, 32768, 65535], dtype=torch.uint16),
        "u32": torch.tensor([0, 1, 2**31, 2**32 - 1], dtype=torch.uint32),
        "u64": torch.tensor([0, 1, 2**63, 2**64 - 2**40], dtype=torch.uint64),
        "bool": torch.tensor([True, False, True]),
        "scalar": torch.tensor(1.5, dtype=torch.bfloat16),
        "empty": torch.zeros(0, 4),
        "f8_e4m3": every_byte.view(torch.float8_e4m3fn),
        "f8_e5m2": every_byte.view(torch.float8_e5m2),
        "f8_e4m3fnuz": every_byte.view(torch.float8_e4m3fnuz),
        "f8_e5m2fnuz": every_byte.view(torch.float8_e5m2fnuz),
        "f8_e8m0": every_byte.view(torch.float8_e8m0fnu),
    }
    file = np.frombuffer(safetensors.torch.save({k: v.clone() for k, v in tensors.items()}), dtype=np.uint8)
    values = {}
    for name, tensor in tensors.items():
        values[name] = {"shape": list(tensor.shape), "float32": encode(tensor.float().numpy())}
    return {"file": encode(file), "values": values}


def real(path: Path, names: list) -> dict:
    reader = gguf.GGUFReader(path)
    tensors = {}
    for tensor in reader.tensors:
        if tensor.name in names:
            values = dequantize(tensor.data, tensor.tensor_type)
            tensors[tensor.name] = {
                "kind": tensor.tensor_type.name,
                "shape": [int(d) for d in reversed(tensor.shape)],
                "sha256": sha256(values),
                "first": [float(x) for x in values.ravel()[:4]],
            }
    assert len(tensors) == len(names), names
    return {"file": path.name, "tensors": tensors}


def choose(path: Path) -> list:
    """The first two tensors of each type that are not huge."""
    seen = {}
    for tensor in gguf.GGUFReader(path).tensors:
        if tensor.n_elements < 4_000_000:
            seen.setdefault(tensor.tensor_type.name, []).append(tensor.name)
    return [name for names in seen.values() for name in names[:2]]


def main() -> None:
    files = [MODELS / "SmolLM2-135M-Instruct.Q4_1.gguf", MODELS / "gemma-3-270m-q4_k_m.gguf"]
    expected = {
        "generator": "reference/gguf_dequantize.py",
        "versions": {
            "gguf": "0.19.0",
            "numpy": np.__version__,
            "torch": torch.__version__,
            "safetensors": safetensors.__version__,
            "python": platform.python_version(),
        },
        "kinds": kinds(),
        "halves": every_half(),
        "dtypes": dtypes(),
        "real": [real(path, choose(path)) for path in files],
    }
    OUT.write_text(json.dumps(expected, indent=1) + "\n")
    print(OUT.stat().st_size, "bytes;", [list(r["tensors"]) for r in expected["real"]])


main()

"""Writes test/fixtures/gguf/: small GGUF files by the gguf package, and what its own reader says of them; and the
divisors that llama.cpp's converter would bake for Llama 3's scaling (float32 torch, as it computes them).

Run by hand from the repository's root: python reference/gguf_fixtures.py
"""

import json
import math
import platform
from pathlib import Path

import gguf
import numpy as np
import torch

OUT = Path(__file__).parent.parent / "test" / "fixtures" / "gguf"
OUT.mkdir(parents=True, exist_ok=True)
VERSIONS = {"gguf": "0.19.0", "numpy": np.__version__, "torch": torch.__version__, "python": platform.python_version()}
Q = gguf.GGMLQuantizationType


def fill(writer: gguf.GGUFWriter) -> None:
    writer.add_name("All types")
    writer.add_custom_alignment(64)
    writer.add_uint8("t.u8", 255)
    writer.add_int8("t.i8", -128)
    writer.add_uint16("t.u16", 65535)
    writer.add_int16("t.i16", -32768)
    writer.add_uint32("t.u32", 4294967295)
    writer.add_int32("t.i32", -2147483648)
    writer.add_float32("t.f32", 0.1)
    writer.add_uint64("t.u64", 2**53 - 1)
    writer.add_uint64("t.u64_big", 2**64 - 1)
    writer.add_int64("t.i64", -(2**63))
    writer.add_float64("t.f64", math.pi)
    writer.add_bool("t.true", True)
    writer.add_bool("t.false", False)
    writer.add_string("t.string", "héllo 世界 \U0001f600")
    writer.add_array("t.ints", [1, 2, -3])
    writer.add_array("t.floats", [0.5, 1.25])
    writer.add_array("t.bools", [True, False, True])
    writer.add_array("t.strings", ["", "a", "ß"])
    writer.add_array("t.long", list(range(3000)))
    writer.add_array("t.words", [f"word{i}" for i in range(2000)])


def quantised(writer: gguf.GGUFWriter) -> None:
    """One row of every type that the package has a size for, zeros inside."""
    for kind, (block, size) in gguf.GGML_QUANT_SIZES.items():
        if kind == Q.Q8_1:  # the package still says 40 bytes, ggml has said 36 since 2024
            continue
        if kind in (Q.F32, Q.F16, Q.F64, Q.I8, Q.I16, Q.I32, Q.I64):
            continue
        writer.add_tensor(f"q.{kind.name}", np.zeros((2, size), dtype=np.uint8), raw_dtype=kind)
    for dtype in (np.float32, np.float16, np.float64, np.int8, np.int16, np.int32, np.int64):
        writer.add_tensor(f"n.{np.dtype(dtype).name}", np.zeros((2, 3, 5), dtype=dtype))


def dump(path: Path) -> dict:
    reader = gguf.GGUFReader(path)
    fields = {}
    for key, field in reader.fields.items():
        if key.startswith("GGUF."):
            continue
        value = field.contents()
        if isinstance(value, list) and len(value) > 1024:
            value = {"length": len(value), "first": value[0], "last": value[-1]}
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53 - 1:
            value = {"big": str(value)}
        fields[key] = {"types": [t.name for t in field.types], "value": value}
    tensors = {
        t.name: {
            "dimensions": [int(d) for d in t.shape],
            "type": int(t.tensor_type),
            "offset": int(t.data_offset),
            "bytes": int(t.n_bytes),
            "elements": int(t.n_elements),
        }
        for t in reader.tensors
    }
    return {"alignment": int(reader.alignment), "dataOffset": int(reader.data_offset), "fields": fields, "tensors": tensors}


def write(path: Path, *fillers, arch="llama", **options) -> None:
    writer = gguf.GGUFWriter(path, arch, **options)
    for filler in fillers:
        filler(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def llama3_divisors(base: float, dim: int, factor: float, low: float, high: float, length: int) -> list:
    frequencies = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
    divisors = []
    for frequency in frequencies:
        wavelength = 2 * math.pi / frequency
        if wavelength < length / high:
            divisors.append(1)
        elif wavelength > length / low:
            divisors.append(factor)
        else:
            kept = (length / wavelength - low) / (high - low)
            divisors.append(1 / ((1 - kept) / factor + kept))
    return [float(x) for x in torch.tensor(divisors, dtype=torch.float32).double()]


def main() -> None:
    expected = {"generator": "reference/gguf_fixtures.py", "versions": VERSIONS}

    types = OUT / "all-types.gguf"
    write(types, fill, quantised)
    expected["all-types.gguf"] = dump(types)

    big = OUT / "big-endian.gguf"
    write(big, lambda w: w.add_name("Big"), endianess=gguf.GGUFEndian.BIG)

    def parts(writer: gguf.GGUFWriter) -> None:
        writer.add_name("Split")
        writer.add_block_count(1)
        for i in range(5):
            writer.add_tensor(f"t.{i}", np.full((4,), i, dtype=np.float32))

    write(OUT / "split.gguf", parts, split_max_tensors=2)
    expected["split"] = {path.name: dump(path) for path in sorted(OUT.glob("split-*.gguf"))}

    expected["llama3"] = [
        {
            "ropeTheta": base,
            "rotaryDim": dim,
            "factor": factor,
            "lowFreqFactor": 1,
            "highFreqFactor": high,
            "originalMaxPositionEmbeddings": length,
            "divisors": llama3_divisors(base, dim, factor, 1.0, high, length),
        }
        for base, dim, factor, high, length in [
            (5e5, 128, 8.0, 4.0, 8192),  # Llama 3.1
            (5e5, 64, 32.0, 4.0, 8192),  # Llama 3.2 1B
            (5e5, 128, 32.0, 4.0, 8192),  # Llama 3.2 3B
            (1e6, 128, 16.0, 4.0, 8192),  # EXAONE 4
            (1e4, 80, 4.0, 2.5, 2048),
            (1e4, 64, 8.0, 8.0, 4096),
            (1e6, 256, 64.0, 4.0, 32768),
        ]
    ]
    (OUT / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


main()

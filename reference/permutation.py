"""Row permutations of q and k between the rotary layouts: writes test/fixtures/permutation.json.

The matrices are numbered, so a fixture shows where every row went. "half" <- "interleaved" is computed by transformers
itself (its weight conversion, PermuteForRope, as the Llama conversion uses it, and its GGUF reader for llama
architectures); "interleaved" <- "half" by transformers' inverse of the former, and by the reshape that llama.cpp's
converter applies when it writes a GGUF, stated here with numpy and required to be undone by transformers' GGUF reader.

    python reference/permutation.py
"""

import json
import pathlib
import platform
from types import SimpleNamespace

import numpy as np
import torch
import transformers
from transformers.core_model_loading import PermuteForRope
from transformers.modeling_gguf_pytorch_utils import LlamaTensorProcessor

FIXTURE = pathlib.Path(__file__).resolve().parent.parent / "test" / "fixtures" / "permutation.json"


def gguf_rows(half, heads):
    """What llama.cpp's converter writes: each head's two halves dealt out in turn."""
    return half.reshape(heads, 2, half.shape[0] // heads // 2, *half.shape[1:]).swapaxes(1, 2).reshape(half.shape)


def main():
    rows = []
    for heads, key_value_heads, head_dim, columns in ((1, 1, 2, 1), (1, 1, 8, 2), (2, 2, 4, 3), (4, 2, 8, 2), (8, 1, 6, 2), (3, 3, 10, 1)):
        for which, count in (("q", heads), ("k", key_value_heads)):
            matrix = np.arange(count * head_dim * columns, dtype=np.float64).reshape(count * head_dim, columns)
            config = SimpleNamespace(num_attention_heads=count)
            to_half = PermuteForRope()._permute_for_rope(torch.tensor(matrix), config).numpy()
            back = PermuteForRope(inverse=True)._permute_for_rope(torch.tensor(matrix), config).numpy()

            reader = LlamaTensorProcessor(config={"num_attention_heads": heads, "num_key_value_heads": key_value_heads})
            read = reader.process(matrix.copy(), f"blk.0.attn_{which}.weight").weights
            np.testing.assert_array_equal(read, to_half)
            written = gguf_rows(matrix, count)
            np.testing.assert_array_equal(reader.process(written.copy(), f"blk.0.attn_{which}.weight").weights, matrix)
            np.testing.assert_array_equal(written, back)

            rows.append({
                "which": which, "numHeads": count, "headDim": head_dim, "columns": columns,
                "matrix": matrix.ravel().astype(int).tolist(),
                "halfFromInterleaved": to_half.ravel().astype(int).tolist(),
                "interleavedFromHalf": written.ravel().astype(int).tolist(),
            })
            # A bias of one dimension takes the same way.
            bias = PermuteForRope()._permute_for_rope(torch.tensor(matrix[:, 0]), config).numpy()
            np.testing.assert_array_equal(bias, to_half[:, 0])

    made_by = {
        "generator": "reference/permutation.py", "python": platform.python_version(), "numpy": np.__version__,
        "torch": torch.__version__, "transformers": transformers.__version__,
    }
    FIXTURE.write_text(json.dumps({**made_by, "rows": rows}, separators=(",", ":")).replace(',{"', ',\n{"') + "\n")
    print(f"{FIXTURE.name}: {len(rows)} rows, {FIXTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

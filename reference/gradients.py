"""Golden gradients of the graph's ops: writes test/fixtures/gradients.json.

Run by hand: python reference/gradients.py. Needs torch, transformers and numpy (versions are recorded in the output).
Every case is an op of the graph by torch's own function in float64, gradients by torch's autograd, for random gradients
of the outputs. Inputs are float32 numbers. Kinks are included on purpose: torch's choice there is the graph's. Attention
is laid out as the graph's op wants it; rotation and sinks are transformers' own functions. Results are
written with 11 significant digits.
"""

import json
import math
import pathlib
import types

import numpy
import torch
import transformers
from torch.nn import functional as F
from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward as sink_attention
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as rotary_half

generator = torch.Generator().manual_seed(20261130)
cases = []


def normal(*shape):
    return torch.randn(*shape, generator=generator).float().double()


def integers(high, *shape):
    return torch.randint(0, high, shape, generator=generator)


def pack(x, given=True):
    values = x.detach().flatten()
    if x.dtype == torch.float64:
        if given:
            assert (values.float().double() == values).all() or values.isinf().any()
            values = [float(str(v)) for v in values.float().numpy()]
        else:
            values = [float(f"{v:.11g}") for v in values.tolist()]
        values = ["-Infinity" if v == -math.inf else v for v in values]
    else:
        values = values.tolist()
    return {"dtype": {torch.float64: "f32", torch.int64: "i64", torch.bool: "bool"}[x.dtype], "shape": list(x.shape), "values": values}


def case(op, name, attributes, inputs, fn, fixed=()):
    """fn(**inputs) gives the outputs; inputs in `fixed` have no gradient asked for."""

    def leaf(key, x):
        return x.clone().requires_grad_() if x.dtype == torch.float64 and key not in fixed else x

    leaves = {k: [leaf(k, v) for v in x] if isinstance(x, list) else leaf(k, x) for k, x in inputs.items()}
    outputs = fn(**leaves)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    grads = [None if y is None else normal(*y.shape) for y in outputs]
    flat = [(k, v) for k, x in leaves.items() for v in (x if isinstance(x, list) else [x]) if v.requires_grad]
    loss = sum((y * dy).sum() for y, dy in zip(outputs, grads) if y is not None)
    found = torch.autograd.grad(loss, [v for _, v in flat])
    gradients = {}
    for (key, _), g in zip(flat, found):
        if isinstance(inputs[key], list):
            gradients.setdefault(key, []).append(pack(g, False))
        else:
            gradients[key] = pack(g, False)
    cases.append(
        {
            "op": op,
            "name": name,
            "attributes": attributes,
            "inputs": {k: [pack(v) for v in x] if isinstance(x, list) else pack(x) for k, x in inputs.items()},
            "outputGradients": [None if dy is None else pack(dy) for dy in grads],
            "gradients": gradients,
        }
    )


# Elementwise; zeros and large numbers included.
x = torch.cat([normal(17), torch.tensor([-9.0, -4.5, 0.0, 5.25, 11.0, 1e-4])]).float().double()
positive = x.abs() + 0.03125
positive = positive.float().double()
for op, fn in {
    "exp": torch.exp,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "softplus": F.softplus,
    "negate": torch.neg,
    "absolute": torch.abs,
    "sin": torch.sin,
    "cos": torch.cos,
}.items():
    case(op, "zero and both tails", {}, {"x": x}, lambda x, fn=fn: fn(x))
for op, fn in {"log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal}.items():
    case(op, "positive", {}, {"x": positive}, lambda x, fn=fn: fn(x))
for approximate in ("none", "tanh"):
    case(
        "gelu",
        approximate,
        {"approximate": approximate},
        {"x": x},
        lambda x, a=approximate: F.gelu(x, approximate=a),
    )

a, b = normal(4, 1, 6), normal(3, 1)
for op, fn in {"add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "divide": torch.div}.items():
    case(op, "broadcast", {}, {"a": a, "b": b}, lambda a, b, fn=fn: fn(a, b))
ties = torch.tensor([1.0, 2.0, -1.0, 0.0, 3.0]).double()
other = torch.tensor([1.0, 1.0, -1.0, 0.0, 4.0]).double()
for op, fn in {"minimum": torch.minimum, "maximum": torch.maximum}.items():
    case(op, "broadcast", {}, {"a": a, "b": b}, lambda a, b, fn=fn: fn(a, b))
    case(op, "equal elements", {}, {"a": ties, "b": other}, lambda a, b, fn=fn: fn(a, b))
case("power", "broadcast", {}, {"a": positive[:6], "b": normal(4, 1)}, lambda a, b: a**b)
case(
    "power",
    "zero to powers",
    {},
    {"a": torch.zeros(4).double(), "b": torch.tensor([0.0, 1.0, 2.0, 3.0]).double()},
    lambda a, b: a**b,
)
condition = integers(2, 3, 6).bool()
case("where", "broadcast", {}, {"condition": condition, "a": normal(6), "b": normal(3, 1)}, lambda condition, a, b: torch.where(condition, a, b))

# Reductions.
y = normal(3, 4, 5)
case("reduceSum", "two axes", {"axes": [0, 2], "keepDims": False}, {"x": y}, lambda x: x.sum((0, 2)))
case("reduceMean", "two axes, kept", {"axes": [0, 2], "keepDims": True}, {"x": y}, lambda x: x.mean((0, 2), keepdim=True))
case("reduceMax", "last axis", {"axes": [2], "keepDims": False}, {"x": y}, lambda x: x.amax(2))
case("reduceMax", "equal elements", {"axes": [1], "keepDims": False}, {"x": integers(3, 4, 6).double()}, lambda x: x.amax(1))
case("logSumExp", "two axes", {"axes": [0, 2], "keepDims": False}, {"x": y}, lambda x: x.logsumexp((0, 2)))
empty = normal(3, 5)
empty[1, 2:] = -math.inf
case("logSumExp", "minus infinity in a row", {"axes": [1], "keepDims": True}, {"x": empty}, lambda x: x.logsumexp(1, keepdim=True))
case("cumulativeSum", "middle axis", {"axis": 1, "exclusive": False, "reverse": False}, {"x": y}, lambda x: x.cumsum(1))

# Movement with sums.
case("concat", "middle axis", {"axis": 1}, {"values": [normal(2, 1, 3), normal(2, 4, 3)]}, lambda values: torch.cat(values, 1))
case(
    "gather",
    "embedding with repeats",
    {"axis": 0},
    {"x": normal(5, 3), "indices": integers(5, 2, 7)},
    lambda x, indices: F.embedding(indices, x),
)
case(
    "gather",
    "last axis",
    {"axis": 1},
    {"x": normal(3, 4), "indices": integers(4, 6)},
    lambda x, indices: x.index_select(1, indices),
)
case(
    "gatherElements",
    "middle axis",
    {"axis": 1},
    {"x": normal(2, 5, 3), "indices": integers(5, 2, 4, 3)},
    lambda x, indices: x.gather(1, indices),
)
case(
    "scatterAdd",
    "repeats",
    {},
    {"x": normal(4, 3), "indices": integers(4, 9), "rows": normal(9, 3)},
    lambda x, indices, rows: x.index_add(0, indices, rows),
)

# Products, normalisation, losses.
case("matmul", "a weight under a batch", {"transposeA": False, "transposeB": True}, {"a": normal(2, 3, 5), "b": normal(4, 5)}, lambda a, b: a @ b.mT)
case("matmul", "broadcast batches", {"transposeA": False, "transposeB": False}, {"a": normal(2, 1, 3, 5), "b": normal(4, 5, 2)}, lambda a, b: a @ b)
case("matmul", "left transposed", {"transposeA": True, "transposeB": False}, {"a": normal(2, 5, 3), "b": normal(2, 5, 4)}, lambda a, b: a.mT @ b)
case("matmul", "both transposed", {"transposeA": True, "transposeB": True}, {"a": normal(2, 5, 3), "b": normal(4, 5)}, lambda a, b: a.mT @ b.mT)
case("layerNorm", "bias", {"epsilon": 1e-5}, {"x": normal(2, 3, 8), "weight": normal(8), "bias": normal(8)}, lambda x, weight, bias: F.layer_norm(x, (8,), weight, bias, 1e-5))
case("layerNorm", "no bias", {"epsilon": 1e-3}, {"x": normal(3, 8), "weight": normal(8)}, lambda x, weight: F.layer_norm(x, (8,), weight, None, 1e-3))
case("rmsNorm", "weight", {"epsilon": 1e-5}, {"x": normal(2, 3, 8), "weight": normal(8)}, lambda x, weight: F.rms_norm(x, (8,), weight, 1e-5))
case("rmsNorm", "no weight", {"epsilon": 1e-5}, {"x": normal(2, 3, 8)}, lambda x: F.rms_norm(x, (8,), None, 1e-5))
case("softmax", "middle axis", {"axis": 1}, {"x": y}, lambda x: x.softmax(1))
case("logSoftmax", "last axis", {"axis": 2}, {"x": y}, lambda x: x.log_softmax(2))
case(
    "crossEntropy",
    "tokens",
    {},
    {"logits": normal(2, 4, 9) * 4, "targets": integers(9, 2, 4)},
    lambda logits, targets: F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view(2, 4),
)


# Attention.
def by_head(x, heads):
    batch, tokens, width = x.shape
    return x.view(batch, tokens, heads, width // heads).transpose(1, 2)


def attention(name, inputs, numHeads, numKeyValueHeads=None, scale=0.4, softcap=0, causal=True, window=None, fixed=()):
    kv = numKeyValueHeads or numHeads

    def run(query, key=None, value=None, cos=None, sin=None, bias=None, sinks=None):
        if key is None:
            width = query.shape[-1] // (numHeads + 2 * kv)
            query, key, value = query.split([numHeads * width, kv * width, kv * width], -1)
        q, k, v = by_head(query, numHeads), by_head(key, kv), by_head(value, kv)
        tokens, keys = q.shape[2], k.shape[2]
        if cos is not None:
            full = [torch.cat([t, t], -1)[None] for t in (cos, sin)]
            q, k = rotary_half(q, k, *full)
        mask = torch.zeros(1, 1, tokens, keys).double()
        if causal:
            row, column = torch.arange(tokens)[:, None], torch.arange(keys)[None]
            seen = column <= row
            if window is not None:
                seen &= column > row - window
            mask = mask.masked_fill(~seen, -math.inf)
        if bias is not None:
            mask = mask + bias
        module = types.SimpleNamespace(num_key_value_groups=numHeads // kv, training=False, sinks=sinks)
        if sinks is not None:
            out, _ = sink_attention(module, q, k, v, mask, scaling=scale)
            return [out.flatten(2), None, None]
        # By hand, since transformers' functions take their softmax in float32.
        k, v = (x.repeat_interleave(numHeads // kv, 1) for x in (k, v))
        scores = q @ k.mT * scale
        if softcap:
            scores = softcap * torch.tanh(scores / softcap)
        out = (scores + mask).softmax(-1) @ v
        return [out.transpose(1, 2).flatten(2), None, None]

    attributes = {
        "numHeads": numHeads,
        "numKeyValueHeads": kv,
        "scale": scale,
        "softcap": softcap,
        "causal": causal,
        "window": window,
        "layout": "half",
    }
    case("attention", name, attributes, inputs, run, fixed)


def tables(rows, pairs):
    angles = torch.arange(rows)[:, None] * 4.0 ** -torch.arange(pairs)[None]
    return {"cos": angles.cos().float().double(), "sin": angles.sin().float().double()}


def parts(batch, tokens, width, kv_width=None, keys=None):
    kv_width, keys = kv_width or width, keys or tokens
    return {"query": normal(batch, tokens, width), "key": normal(batch, keys, kv_width), "value": normal(batch, keys, kv_width)}


attention("causal", parts(2, 5, 16), 2)
attention("packed, rotated, groups", {"query": normal(2, 5, 32), **tables(5, 2)}, 4, 2, fixed=("cos", "sin"))
attention("learned tables", {**parts(1, 5, 16), **tables(5, 4)}, 2)
attention("a bias of every head, groups", {**parts(2, 5, 16, 8), "bias": normal(1, 4, 5, 5)}, 4, 2)
attention("one bias for a batch's row, all keys", {**parts(2, 4, 16), "bias": normal(2, 1, 4, 4)}, 2, causal=False)
attention("window and soft cap", parts(2, 6, 16), 2, softcap=2.0, window=3)
attention("sinks", {**parts(2, 5, 16), "sinks": normal(2)}, 2)
attention("keys of an encoder", parts(2, 3, 16, keys=6), 2, causal=False)
attention("70 tokens: two blocks of queries", {"query": normal(1, 70, 48), **tables(70, 4)}, 2, fixed=("cos", "sin"))

path = pathlib.Path(__file__).parent.parent / "test/fixtures/gradients.json"
versions = {"torch": torch.__version__, "transformers": transformers.__version__, "numpy": numpy.__version__}
with open(path, "w") as f:
    f.write('{"generator": "reference/gradients.py", "versions": ' + json.dumps(versions) + ', "cases": [\n')
    f.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases))
    f.write("\n]}\n")
print(path.stat().st_size, "bytes,", len(cases), "cases")

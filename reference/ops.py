"""Golden values of the graph's ops: writes test/fixtures/ops.json.

Run by hand: python reference/ops.py. Needs torch, transformers and numpy (versions are recorded in the output).
Inputs are rounded to float32, results are computed in float64 by torch, or by transformers' own functions where it has
them (rotation, soft caps, sinks). Attention inputs are laid out as the graph's op wants them: query [B, T, H*D], past
[B, K, capacity, D]; results as [B, T, H*D]. Results are written with 11 significant digits, inputs with as many as
their float32 needs.
"""

import json
import pathlib
import types

import numpy
import torch
import transformers
from torch.nn import functional as F
from transformers.models.cohere.modeling_cohere import apply_rotary_pos_emb as rotary_interleaved
from transformers.models.gemma2.modeling_gemma2 import eager_attention_forward as gemma2_attention
from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward as sink_attention
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as rotary_half

generator = torch.Generator().manual_seed(20260901)
cases = []


def normal(*shape):
    return torch.randn(*shape, generator=generator).float().double()


def integers(high, *shape):
    return torch.randint(0, high, shape, generator=generator)


def case(op, name, attributes, inputs, outputs):
    def pack(x, given=True):
        dtypes = {torch.float64: "f32", torch.int64: "i64", torch.uint8: "u8", torch.bool: "bool"}
        values = x.flatten()
        if given and x.dtype == torch.float64:
            assert (values.float().double() == values).all(), (op, name)
            # The shortest decimal that rounds to the float32.
            values = [float(str(v)) for v in values.float().numpy()]
        else:
            values = [float(f"{v:.11g}") if x.dtype == torch.float64 else v for v in values.tolist()]
        return {"dtype": dtypes[x.dtype], "shape": list(x.shape), "values": values}

    cases.append(
        {
            "op": op,
            "name": name,
            "attributes": attributes,
            "inputs": {
                key: [pack(v) for v in value] if isinstance(value, list) else pack(value)
                for key, value in inputs.items()
                if value is not None
            },
            "outputs": [pack(x, given=False) for x in outputs],
        }
    )


# Elementwise.
x = torch.cat([normal(21), torch.tensor([-9.0, -4.5, -0.0, 0.0, 5.25, 11.0, 1e-4])]).double()
x = x.float().double()
for name, fn in {
    "exp": torch.exp,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "softplus": F.softplus,
    "negate": torch.neg,
    "absolute": torch.abs,
    "sign": torch.sign,
    "floor": torch.floor,
    "sin": torch.sin,
    "cos": torch.cos,
}.items():
    case(name, "from -9 to 11", {}, {"x": x}, [fn(x)])
case("gelu", "exact", {"approximate": "none"}, {"x": x}, [F.gelu(x)])
case("gelu", "tanh", {"approximate": "tanh"}, {"x": x}, [F.gelu(x, approximate="tanh")])
positive = (normal(9).abs() + 1e-3).float().double()
for name, fn in {"log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal}.items():
    case(name, "positive", {}, {"x": positive}, [fn(positive)])
a, b = normal(2, 1, 3), normal(4, 1)
for name, fn in {
    "add": torch.add,
    "subtract": torch.sub,
    "multiply": torch.mul,
    "divide": torch.div,
    "minimum": torch.minimum,
    "maximum": torch.maximum,
}.items():
    case(name, "broadcast", {}, {"a": a, "b": b}, [fn(a, b)])
case("power", "broadcast", {}, {"a": a.abs(), "b": b}, [torch.pow(a.abs(), b)])
case("divide", "integers towards zero", {}, {"a": torch.tensor([7, -7, 7, -7]), "b": torch.tensor([2, 2, -2, -2])}, [torch.div(torch.tensor([7, -7, 7, -7]), torch.tensor([2, 2, -2, -2]), rounding_mode="trunc")])
c, d = integers(3, 2, 4), integers(3, 4)
for name, fn in {"equal": torch.eq, "less": torch.lt, "lessEqual": torch.le}.items():
    case(name, "integers", {}, {"a": c, "b": d}, [fn(c, d)])
p, q = normal(2, 4), normal(4)
case("where", "broadcast", {}, {"condition": c > 0, "a": p, "b": q}, [torch.where(c > 0, p, q)])
m, n = c > 0, d > 1
case("and", "broadcast", {}, {"a": m, "b": n}, [m & n])
case("or", "broadcast", {}, {"a": m, "b": n}, [m | n])
case("not", "all", {}, {"x": m}, [~m])

# Reductions.
r = normal(3, 4, 5)
case("reduceSum", "two axes", {"axes": [0, 2], "keepDims": False}, {"x": r}, [r.sum((0, 2))])
case("reduceMean", "kept", {"axes": [1], "keepDims": True}, {"x": r}, [r.mean(1, keepdim=True)])
case("reduceMax", "last", {"axes": [2], "keepDims": False}, {"x": r}, [r.amax(2)])
wide = r * 300
case("logSumExp", "far from zero", {"axes": [2], "keepDims": False}, {"x": wide.float().double()}, [torch.logsumexp(wide.float().double(), 2)])
case("logSumExp", "two axes", {"axes": [0, 1], "keepDims": True}, {"x": r}, [torch.logsumexp(r, (0, 1), keepdim=True)])
case("argMax", "middle axis", {"axis": 1, "keepDims": False}, {"x": r}, [r.argmax(1)])
case("cumulativeSum", "forward", {"axis": 1, "exclusive": False, "reverse": False}, {"x": r}, [r.cumsum(1)])
case("cumulativeSum", "reverse", {"axis": 1, "exclusive": False, "reverse": True}, {"x": r}, [r.flip(1).cumsum(1).flip(1)])
case("cumulativeSum", "exclusive", {"axis": 2, "exclusive": True, "reverse": False}, {"x": r}, [r.cumsum(2) - r])

# Movement.
case("transpose", "three axes", {"permutation": [2, 0, 1]}, {"x": r}, [r.permute(2, 0, 1).contiguous()])
case("broadcast", "leading and inner", {"shape": [2, 3, 4]}, {"x": (s := normal(3, 1))}, [s.expand(2, 3, 4).contiguous()])
case("concat", "middle axis", {"axis": 1}, {"values": [r, (t := normal(3, 2, 5))]}, [torch.cat([r, t], 1)])
case("slice", "step 2", {"axis": 2, "start": 1, "end": 5, "step": 2}, {"x": r}, [r[:, :, 1:5:2].contiguous()])
case("dynamicSlice", "middle", {"axis": 1, "size": 2}, {"x": r, "start": torch.tensor(1)}, [r[:, 1:3].contiguous()])
updated = r.clone()
rows = normal(3, 2, 5)
updated[:, 1:3] = rows
case("updateSlice", "middle", {"axis": 1}, {"x": r, "rows": rows, "start": torch.tensor(1)}, [updated])
case("split", "uneven", {"axis": 2, "sizes": [1, 4]}, {"x": r}, [part.contiguous() for part in r.split([1, 4], 2)])
case("pad", "both sides", {"axis": 1, "before": 1, "after": 2, "value": 0.5}, {"x": r}, [F.pad(r, (0, 0, 1, 2), value=0.5)])
case("pad", "first axis", {"axis": 0, "before": 0, "after": 1, "value": 0}, {"x": r}, [F.pad(r, (0, 0, 0, 0, 0, 1))])
ids = integers(3, 2, 6)
case("gather", "rows", {"axis": 0}, {"x": r, "indices": ids}, [F.embedding(ids, r.reshape(3, 20)).reshape(2, 6, 4, 5)])
columns = integers(5, 3)
case("gather", "columns", {"axis": 2}, {"x": r, "indices": columns}, [r.index_select(2, columns)])
picks = integers(4, 3, 2, 5)
case("gatherElements", "middle axis", {"axis": 1}, {"x": r, "indices": picks}, [r.gather(1, picks)])
spots, adds = torch.tensor([1, 0, 1, 1]), normal(4, 4, 5)
case("scatterAdd", "repeated rows", {}, {"x": r, "indices": spots, "rows": adds}, [r.index_add(0, spots, adds)])
case("cast", "towards zero", {"dtype": "i64"}, {"x": x}, [x.to(torch.int64)])

# Matrix products.
case("matmul", "batched, broadcast", {"transposeA": False, "transposeB": False}, {"a": (a := normal(2, 1, 3, 4)), "b": (b := normal(3, 4, 5))}, [a @ b])
case("matmul", "right transposed", {"transposeA": False, "transposeB": True}, {"a": (a := normal(2, 3, 4)), "b": (b := normal(5, 4))}, [a @ b.T])
case("matmul", "both transposed", {"transposeA": True, "transposeB": True}, {"a": (a := normal(4, 3)), "b": (b := normal(5, 4))}, [a.T @ b.T])


def quantized(bits, block, rows, blocks, zero_points):
    """Random blocks; the first element of a byte is in its low nibble."""
    q = torch.randint(0, 2**bits, (rows, blocks, block), generator=generator)
    scales = (torch.rand(rows, blocks, generator=generator) * 0.1 + 0.01).float().double()
    pack = lambda z: z.to(torch.uint8) if bits == 8 else (z[..., 0::2] + 16 * z[..., 1::2]).to(torch.uint8)
    zeros, packed = torch.full((rows, blocks), 2.0 ** (bits - 1)).double(), None
    if zero_points == "u8":
        zeros = torch.randint(0, 2**bits, (rows, blocks), generator=generator).double()
        whole = zeros.long() if blocks % 2 == 0 or bits == 8 else torch.cat([zeros.long(), torch.zeros(rows, 1).long()], 1)
        packed = pack(whole)
    elif zero_points == "float":
        packed = zeros = (torch.rand(rows, blocks, generator=generator) * 2**bits).float().double()
    weight = ((q.double() - zeros[..., None]) * scales[..., None]).reshape(rows, blocks * block)
    return pack(q), scales, packed, weight


for bits, block, zero_points in [(4, 32, None), (4, 16, "u8"), (4, 32, "float"), (8, 32, None), (8, 16, "u8")]:
    blocks, scales, zeros, weight = quantized(bits, block, 8, 3, zero_points)
    activations = normal(2, 3, 3 * block)
    format = {"bits": bits, "blockSize": block}
    name = f"{bits} bits, blocks of {block}, zero points {zero_points}"
    case("dequantize", name, format, {"blocks": blocks, "scales": scales, "zeroPoints": zeros}, [weight])
    case("quantizedMatmul", name, {**format, "accuracyLevel": 0}, {"x": activations, "blocks": blocks, "scales": scales, "zeroPoints": zeros}, [activations @ weight.T])

# Normalisation and losses.
h, weight, bias = normal(2, 3, 16), normal(16), normal(16)
case("layerNorm", "weight and bias", {"epsilon": 1e-5}, {"x": h, "weight": weight, "bias": bias}, [F.layer_norm(h, (16,), weight, bias, 1e-5)])
case("layerNorm", "without bias", {"epsilon": 1e-12}, {"x": h, "weight": weight}, [F.layer_norm(h, (16,), weight, None, 1e-12)])
case("rmsNorm", "weight", {"epsilon": 1e-6}, {"x": h, "weight": weight}, [F.rms_norm(h, (16,), weight, 1e-6)])
tiny = (h * 1e-4).float().double()
case("rmsNorm", "epsilon matters", {"epsilon": 1e-6}, {"x": tiny, "weight": weight}, [F.rms_norm(tiny, (16,), weight, 1e-6)])
case("softmax", "last axis", {"axis": 2}, {"x": h * 16}, [F.softmax(h * 16, -1)])
case("softmax", "first axis", {"axis": 0}, {"x": h}, [F.softmax(h, 0)])
case("logSoftmax", "last axis", {"axis": 2}, {"x": h}, [F.log_softmax(h, -1)])
targets = integers(16, 2, 3)
case("crossEntropy", "per token", {}, {"logits": h, "targets": targets}, [F.cross_entropy(h.reshape(6, 16), targets.flatten(), reduction="none").reshape(2, 3)])

# Rotation.


def tables(rows, pairs):
    angles = torch.outer(torch.arange(rows).double(), 10000.0 ** (-torch.arange(pairs).double() / pairs))
    return (1.1 * angles.cos()).float().double(), (1.1 * angles.sin()).float().double()


def turn(x, heads, cos, sin, layout):
    """x [B, T, heads*D] by transformers: half as Llama, interleaved as Cohere; the rest of the head passes."""
    B, T, width = x.shape
    split = x.reshape(B, T, heads, width // heads).transpose(1, 2)
    part, rest = split[..., : 2 * cos.shape[1]], split[..., 2 * cos.shape[1] :]
    if layout == "half":
        full = [torch.cat([table, table], -1)[None] for table in (cos, sin)]
        part, _ = rotary_half(part, part, *full)
    else:
        full = [torch.repeat_interleave(table, 2, dim=-1)[None] for table in (cos, sin)]
        part = interleaved(part, *full)
    return torch.cat([part, rest], -1).transpose(1, 2).reshape(B, T, width)


def interleaved(x, cos, sin):
    """By Cohere's rotate_half in float64, and checked against its whole function in float32."""
    from transformers.models.cohere.modeling_cohere import rotate_half

    exact = x * cos[:, None] + rotate_half(x) * sin[:, None]
    single, _ = rotary_interleaved(x.float(), x.float(), cos.float(), sin.float())
    assert (exact - single.double()).abs().max() < 1e-6
    return exact


for layout in ["half", "interleaved"]:
    for batch, heads, head_dim, pairs in [(1, 2, 16, 8), (2, 3, 16, 4), (2, 2, 8, 4)]:
        x = normal(batch, 5, heads * head_dim)
        cos, sin = tables(5, pairs)
        case("rotary", f"{layout}, batch {batch}, head {head_dim}, {pairs} pairs", {"numHeads": heads, "layout": layout}, {"x": x, "cos": cos, "sin": sin}, [turn(x, heads, cos, sin, layout)])

# Attention.


def attention(name, heads, kv_heads, head_dim, batch=1, tokens=5, keys=None, past=0, capacity=None, softcap=0.0, causal=True, window=None, bias=None, sinks=False, rotary=None, layout="half", packed=False, scale=None):
    scale = head_dim**-0.5 if scale is None else scale
    keys = tokens if keys is None else keys
    query, key, value = normal(batch, tokens, heads * head_dim), normal(batch, keys, kv_heads * head_dim), normal(batch, keys, kv_heads * head_dim)
    capacity = past if capacity is None else capacity
    past_key, past_value = normal(batch, kv_heads, capacity, head_dim), normal(batch, kv_heads, capacity, head_dim)
    total = past + keys
    cos = sin = None
    q, k = query, key
    if rotary is not None:
        cos, sin = tables(total + 3, rotary)
        rows = slice(past, past + tokens)
        q, k = turn(query, heads, cos[rows], sin[rows], layout), turn(key, kv_heads, cos[rows], sin[rows], layout)
    split = lambda x, n: x.reshape(batch, -1, n, head_dim).transpose(1, 2)
    q, new_key, new_value = split(q, heads), split(k, kv_heads).contiguous(), split(value, kv_heads).contiguous()
    k, v = torch.cat([past_key[:, :, :past], new_key], 2), torch.cat([past_value[:, :, :past], new_value], 2)
    mask = torch.zeros(1, 1, tokens, total).double()
    row, column = torch.arange(tokens)[:, None] + past, torch.arange(total)[None]
    if causal:
        mask = mask.masked_fill(column > row, float("-inf"))
    if window is not None:
        mask = mask.masked_fill(column <= row - window, float("-inf"))
    bias_values = None if bias is None else normal(*[{"B": batch, "H": heads, "1": 1}[c] for c in bias], tokens, total)
    module = types.SimpleNamespace(num_key_value_groups=heads // kv_heads, training=False)
    sink_values = None
    added = mask if bias is None else mask + bias_values
    if sinks or softcap > 0:
        # In float64 by hand, since transformers' functions take their softmax in float32; and checked against them.
        scores = q @ k.repeat_interleave(heads // kv_heads, 1).transpose(2, 3) * scale
        if softcap > 0:
            scores = softcap * torch.tanh(scores / softcap)
        scores = scores + added
        if sinks:
            module.sinks = sink_values = normal(heads)
            scores = torch.cat([scores, sink_values[None, :, None, None].expand(batch, -1, tokens, 1)], 3)
            theirs, _ = sink_attention(module, q, k, v, added, scaling=scale)
        else:
            theirs, _ = gemma2_attention(module, q, k, v, added, scaling=scale, softcap=softcap)
        out = (scores.softmax(3)[..., :total] @ v.repeat_interleave(heads // kv_heads, 1)).transpose(1, 2)
        assert (out - theirs).abs().max() < 1e-6, name
    else:
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=added, scale=scale, enable_gqa=True).transpose(1, 2)
    inputs = {"query": torch.cat([query, key, value], -1)} if packed else {"query": query, "key": key, "value": value}
    if capacity > 0:
        inputs |= {"pastKey": past_key, "pastValue": past_value}
        if capacity != past:
            inputs |= {"pastLength": torch.tensor(past)}
    inputs |= {"cos": cos, "sin": sin, "bias": bias_values, "sinks": sink_values}
    attributes = {"numHeads": heads, "numKeyValueHeads": kv_heads, "scale": scale, "softcap": softcap, "causal": causal, "window": window, "layout": layout}
    case("attention", name, attributes, inputs, [out.reshape(batch, tokens, heads * head_dim), new_key, new_value])


attention("causal", 4, 4, 16)
attention("grouped heads, batch of 2, a scale of its own", 4, 2, 16, batch=2, scale=0.4)
attention("one query after a past", 4, 2, 16, tokens=1, past=7)
attention("several queries after a past in a longer buffer", 4, 2, 16, tokens=3, past=4, capacity=9)
attention("an empty past in a longer buffer", 4, 2, 16, tokens=3, past=0, capacity=9)
attention("batch of 2 after a past in a longer buffer", 4, 2, 16, batch=2, tokens=3, past=4, capacity=9)
attention("window", 2, 1, 16, tokens=7, window=3)
attention("window shorter than the past", 2, 1, 16, tokens=3, past=6, window=4)
attention("window of one", 2, 2, 8, tokens=4, window=1)
attention("soft cap", 4, 2, 16, softcap=2.5, scale=2.0)
attention("soft cap and window after a past", 4, 2, 16, softcap=3.0, past=5, window=4, scale=1.5)
attention("bias by head", 4, 2, 16, bias="1H")
attention("bias by batch, shared by heads, after a past", 4, 2, 16, batch=2, past=3, bias="B1")
attention("bias after a past in a longer buffer", 4, 4, 16, past=3, capacity=8, bias="1H")
attention("bias without a mask", 4, 4, 16, bias="1H", causal=False, scale=1.0)
attention("without a mask", 4, 2, 16, causal=False)
attention("more keys than queries", 4, 2, 16, tokens=3, keys=8, causal=False)
attention("fewer keys than queries", 4, 2, 16, tokens=6, keys=2, causal=False, batch=2)
attention("sinks", 4, 2, 16, sinks=True)
attention("sinks and a window after a past", 4, 2, 16, sinks=True, past=4, window=3)
attention("rotary half", 4, 2, 16, rotary=8)
attention("rotary half after a past in a longer buffer", 4, 2, 16, rotary=8, tokens=3, past=4, capacity=10)
attention("rotary interleaved, partial, after a past", 4, 2, 32, rotary=8, layout="interleaved", past=3)
attention("rotary half, partial", 2, 1, 32, rotary=4, batch=2)
attention("packed, rotary interleaved", 4, 2, 16, rotary=8, layout="interleaved", packed=True)
attention("packed, rotary half, partial, after a past in a longer buffer", 4, 2, 32, rotary=8, packed=True, past=3, capacity=8)
attention("packed, no rotation", 4, 4, 8, packed=True, batch=2)
attention("heads of 8, rotary", 4, 2, 8, rotary=4, layout="interleaved", past=2, capacity=6)
attention("heads of 8, packed, rotary", 4, 2, 8, rotary=4, packed=True)
attention("heads of 12, rotary, after a past in a longer buffer", 2, 1, 12, rotary=6, past=3, capacity=5, tokens=3)
attention("heads of 12, everything", 4, 2, 12, rotary=4, past=3, capacity=5, softcap=4.0, window=4, bias="1H")
attention("heads of 12, sinks", 4, 2, 12, sinks=True)

# Rounding to the half precisions, by numpy and torch.
wide = numpy.random.default_rng(7).standard_normal(400) * 10.0 ** numpy.random.default_rng(8).integers(-9, 6, 400)
numpy.seterr(over="ignore")
wide = numpy.concatenate([wide, [0.1, 1 / 3, 65519.0, 65520.0, 1e-8, 6e-8, 3.4e38, 1e-40]])
single = torch.tensor(wide).float()
halves = {
    "float64": wide.tolist(),
    "float16": wide.astype(numpy.float16).view(numpy.uint16).tolist(),
    "float32": single.double().tolist(),
    "bfloat16": single.to(torch.bfloat16).view(torch.int16).to(torch.int32).bitwise_and(0xFFFF).tolist(),
}

document = {
    "generator": "reference/ops.py",
    "versions": {"torch": torch.__version__, "transformers": transformers.__version__, "numpy": numpy.__version__},
    "cases": cases,
    "halves": halves,
}
path = pathlib.Path(__file__).parent.parent / "test" / "fixtures" / "ops.json"
path.write_text(json.dumps(document))
print(len(cases), "cases,", path.stat().st_size, "bytes")

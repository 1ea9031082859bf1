"""Golden training runs: writes test/fixtures/training.json.

Run by hand: python reference/training.py. Needs torch, transformers and numpy (versions are recorded in the output). Small decoders
in plain torch, one for each encoding and block kind, trained for some steps by torch.optim.AdamW with clipping and a
schedule; the fixture has the initial weights, the tokens, the loss and gradient norm of each step, and the weights at
the end. A second part is AdamW alone on random gradients. Everything is computed in float64, so that differences are
the other side's. The models are written from the papers, apart from the graph: T5's buckets are transformers',
KERPLE's and FIRE's biases are their authors' formulas.
"""

import json
import math
import pathlib

import numpy
import torch
import transformers
from torch.nn import functional as F
from transformers.models.t5.modeling_t5 import T5Attention

V, C, H, L, I, B, T = 23, 16, 2, 2, 24, 3, 9
STEPS = 8


def generator(seed):
    return torch.Generator().manual_seed(seed)


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Model:
    def __init__(self, name, encoding, gpt=False, qk_norm=False, kv=H, window=None, tied=True, seed=1):
        self.name, self.encoding, self.gpt, self.qk_norm, self.kv, self.window, self.tied = (
            name, encoding, gpt, qk_norm, kv, window, tied,
        )
        gen = generator(seed)
        self.p = {}

        def normal(name, *shape, std=0.3):
            self.p[name] = (torch.randn(shape, generator=gen) * std).float().double().requires_grad_()

        def about(name, *shape, value=1.0):
            self.p[name] = (value + 0.1 * torch.randn(shape, generator=gen)).float().double().requires_grad_()

        D = C // H
        normal("embedding.weight", V, C)
        if encoding == "learned":
            normal("positions.weight", T + 2, C)
        for l in range(L):
            pre = f"layers.{l}."
            shapes = {"query": (H * D, C), "key": (kv * D, C), "value": (kv * D, C), "attentionOutput": (C, H * D)}
            shapes |= {"up": (I, C), "down": (C, I)} if gpt else {"gate": (I, C), "up": (I, C), "down": (C, I)}
            for key, shape in shapes.items():
                normal(f"{pre}{key}.weight", *shape)
                if gpt:
                    normal(f"{pre}{key}.bias", shape[0])
            for key in ("attentionNorm", "mlpNorm"):
                about(f"{pre}{key}.weight", C)
                if gpt:
                    normal(f"{pre}{key}.bias", C)
            if qk_norm:
                about(f"{pre}queryNorm.weight", D)
                about(f"{pre}keyNorm.weight", D)
            if encoding == "t5" and l == 0:
                normal(f"{pre}relativeBias.weight", 8, H)
            if encoding.startswith("kerple"):
                about(f"{pre}kerple.r1", H, value=0.5)
                about(f"{pre}kerple.r2", H, value=0.7)
            if encoding == "fire":
                about(f"{pre}fire.c", value=0.3)
                about(f"{pre}fire.threshold", value=4.0)
                normal(f"{pre}fire.layers.0.weight", 5, 1)
                normal(f"{pre}fire.layers.0.bias", 5)
                normal(f"{pre}fire.layers.1.weight", H, 5)
                normal(f"{pre}fire.layers.1.bias", H)
        about("finalNorm.weight", C)
        if gpt:
            normal("finalNorm.bias", C)
        if not tied:
            normal("head.weight", V, C)

    def norm(self, x, name):
        if self.gpt:
            return F.layer_norm(x, (C,), self.p[f"{name}.weight"], self.p[f"{name}.bias"], 1e-5)
        return F.rms_norm(x, x.shape[-1:], self.p[f"{name}.weight"], 1e-5)

    def linear(self, x, name):
        return F.linear(x, self.p[f"{name}.weight"], self.p.get(f"{name}.bias"))

    def bias(self, layer):
        p, pre = self.p, f"layers.{layer}."
        position = torch.arange(T)
        relative = position[None] - position[:, None]  # key - query
        distance = (-relative).clamp(min=0).double()
        if self.encoding == "alibi":
            slopes = torch.tensor([2.0 ** -(8 * (h + 1) / H) for h in range(H)]).double()
            return -slopes[:, None, None] * distance
        if self.encoding == "t5":
            bucket = T5Attention._relative_position_bucket(relative, False, 8, 12)
            return p["layers.0.relativeBias.weight"][bucket].permute(2, 0, 1)
        if self.encoding == "kerple-log":
            r1, r2 = (p[f"{pre}kerple.{k}"].clamp(min=0.01)[:, None, None] for k in ("r1", "r2"))
            return -r1 * torch.log(1 + r2 * distance)
        if self.encoding == "kerple-power":
            r1, r2 = (p[f"{pre}kerple.{k}"].clamp(min=0.01)[:, None, None] for k in ("r1", "r2"))
            return -r1 * distance ** r2.clamp(max=2)
        if self.encoding == "fire":
            c, threshold = p[f"{pre}fire.c"], torch.abs(p[f"{pre}fire.threshold"])
            top = torch.log(torch.abs(c * relative.abs()) + 1)
            bottom = torch.log(torch.abs(c * torch.maximum(position.double(), threshold)) + 1)[:, None] + 1e-6
            x = (top / bottom)[..., None]
            x = F.relu(F.linear(x, p[f"{pre}fire.layers.0.weight"], p[f"{pre}fire.layers.0.bias"]))
            return F.linear(x, p[f"{pre}fire.layers.1.weight"], p[f"{pre}fire.layers.1.bias"]).permute(2, 0, 1)
        return None

    def loss(self, tokens, targets):
        D = C // H
        x = F.embedding(tokens, self.p["embedding.weight"])
        if self.encoding == "learned":
            x = x + self.p["positions.weight"][:T]
        if self.encoding == "sinusoidal":
            angle = torch.arange(T)[:, None] * 10000.0 ** -(torch.arange(0, C, 2).double() / C)
            x = x + torch.stack([angle.sin(), angle.cos()], -1).flatten(1).float().double()
        angle = torch.arange(T)[:, None] * 100.0 ** -(torch.arange(0, D, 2).double() / D)
        cos, sin = angle.cos().float().double(), angle.sin().float().double()
        mask = torch.ones(T, T, dtype=torch.bool).tril()
        for l in range(L):
            pre = f"layers.{l}."
            y = self.norm(x, f"{pre}attentionNorm")
            q, k, v = (self.linear(y, pre + n).view(B, T, -1, D) for n in ("query", "key", "value"))
            if self.qk_norm:
                q, k = self.norm(q, f"{pre}queryNorm"), self.norm(k, f"{pre}keyNorm")
            q, k, v = (a.transpose(1, 2) for a in (q, k, v))
            if self.encoding == "rope":
                q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            k, v = (a.repeat_interleave(H // self.kv, 1) for a in (k, v))
            scores = q @ k.mT / math.sqrt(D)
            bias = self.bias(l)
            if bias is not None:
                scores = scores + bias
            seen = mask if self.window is None or l > 0 else mask & ~torch.ones(T, T, dtype=torch.bool).tril(-self.window)
            y = scores.masked_fill(~seen, -math.inf).softmax(-1) @ v
            x = x + self.linear(y.transpose(1, 2).flatten(2), f"{pre}attentionOutput")
            y = self.norm(x, f"{pre}mlpNorm")
            up = self.linear(y, f"{pre}up")
            y = F.gelu(up) if self.gpt else F.silu(self.linear(y, f"{pre}gate")) * up
            x = x + self.linear(y, f"{pre}down")
        head = self.p["embedding.weight" if self.tied else "head.weight"]
        logits = F.linear(self.norm(x, "finalNorm"), head)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


def numbers(x, digits=None):
    values = x.detach().double().flatten()
    if digits is None:
        return [float(str(v)) for v in values.float().numpy()]
    return [float(f"{v:.{digits}g}") for v in values.tolist()]


def rate(step):  # warm-up of 2 steps, then half a cosine to a tenth over 8
    if step < 2:
        return 0.01 * (step + 1) / 2
    return 0.01 * (0.1 + 0.9 * (1 + math.cos(math.pi * (step - 2) / (STEPS - 2))) / 2)


def run(model):
    gen = generator(7)
    data = torch.randint(0, V, (STEPS, B, T + 1), generator=gen)
    targets = data[..., 1:].clone()
    targets[2:, 0, :4] = -1  # what does not count
    initial = {name: numbers(p) for name, p in model.p.items()}
    groups = [
        {"params": [p for p in model.p.values() if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for p in model.p.values() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.95), eps=1e-8)
    losses, norms = [], []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        loss = model.loss(data[step, :, :-1], targets[step])
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.p.values(), 1.0).item())
        losses.append(loss.item())
        optimizer.step()
    return {
        "name": model.name,
        "encoding": model.encoding,
        "gpt": model.gpt,
        "queryKeyNorm": model.qk_norm,
        "numKeyValueHeads": model.kv,
        "window": model.window,
        "tied": model.tied,
        "tokens": data[..., :-1].flatten().tolist(),
        "targets": targets.flatten().tolist(),
        "shapes": {name: list(p.shape) for name, p in model.p.items()},
        "initial": initial,
        "losses": [float(f"{x:.10g}") for x in losses],
        "gradientNorms": [float(f"{x:.10g}") for x in norms],
        # A sum and some elements of each say whether the update is right, at a tenth of the bytes.
        "final": {name: {"sum": float(f"{p.sum().item():.10g}"), "first": numbers(p.flatten()[:6], 9)} for name, p in model.p.items()},
    }


def adamw(name, dtype, betas, eps, decay, steps=40):
    gen = generator(3)
    start = torch.randn(30, generator=gen, dtype=torch.float32)
    grads = torch.randn(steps, 30, generator=gen, dtype=torch.float32) * torch.logspace(-3, 2, 30)
    w = start.to(dtype).clone().requires_grad_()
    optimizer = torch.optim.AdamW([w], lr=0.02, betas=betas, eps=eps, weight_decay=decay)
    after = []
    for g in grads:
        w.grad = g.to(dtype)
        optimizer.step()
        after.append(numbers(w, 10))
    return {
        "name": name, "beta1": betas[0], "beta2": betas[1], "epsilon": eps, "weightDecay": decay, "learningRate": 0.02,
        "initial": numbers(start), "gradients": [numbers(g) for g in grads], "weights": after,
    }


models = [
    Model("Llama: RoPE, groups, QK-norm, untied", "rope", kv=1, qk_norm=True, tied=False),
    Model("nothing, a window in layer 0", "none", window=3),
    Model("sinusoidal", "sinusoidal"),
    Model("GPT-2: learned positions, layer norms, biases, GELU", "learned", gpt=True),
    Model("T5 bias", "t5"),
    Model("ALiBi", "alibi"),
    Model("KERPLE, logarithmic", "kerple-log"),
    Model("KERPLE, power", "kerple-power"),
    Model("FIRE", "fire"),
]
out = {
    "generator": "reference/training.py",
    "versions": {"torch": torch.__version__, "transformers": transformers.__version__, "numpy": numpy.__version__},
    "sizes": {"vocabSize": V, "hiddenSize": C, "numHeads": H, "numLayers": L, "intermediateSize": I, "batchSize": B, "length": T, "steps": STEPS},
}
path = pathlib.Path(__file__).parent.parent / "test/fixtures/training.json"
with open(path, "w") as f:
    f.write(json.dumps(out)[:-1] + ',\n"adamW": [\n')
    f.write(",\n".join(json.dumps(x, separators=(",", ":")) for x in [
        adamw("language models", torch.float64, (0.9, 0.95), 1e-8, 0.1),
        adamw("torch's defaults, no decay", torch.float64, (0.9, 0.999), 1e-8, 0.0),
        adamw("a large epsilon", torch.float64, (0.8, 0.99), 1e-2, 0.5),
    ]))
    f.write('\n],\n"runs": [\n')
    f.write(",\n".join(json.dumps(run(m), separators=(",", ":")) for m in models))
    f.write("\n]}\n")
print(path.stat().st_size, "bytes")

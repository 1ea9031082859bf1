"""torch's side of bench/training.ts: the same model, weights, batches and step, eager and compiled.

Started by bench/training.ts. The first line is the setup: sizes, threads, and the paths of two raw files, float32
weights (named, one after the other) and int64 tokens; each later line is a mode and a number of steps, answered by the
seconds, CPU seconds and loss of each. A step is forward, backward, clipping to norm 1, torch.optim.AdamW(fused=True).
"""

import json
import os
import resource
import sys
import time

setup = json.loads(sys.stdin.readline())
os.environ["OMP_NUM_THREADS"] = str(setup["threads"])

import numpy  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

torch.set_num_threads(setup["threads"])
B, T, C, H, L = (setup[k] for k in ("batchSize", "length", "hiddenSize", "numHeads", "numLayers"))
D = C // H
angles = torch.arange(T)[:, None] * 10000.0 ** -(torch.arange(0, D, 2).double() / D)
COS, SIN = angles.cos().float(), angles.sin().float()


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Model(torch.nn.Module):
    """q, k and v as one product, gate and up as one: what torch is fastest with."""

    def __init__(self, weights):
        super().__init__()
        parameter = torch.nn.Parameter
        self.embedding = parameter(weights["embedding.weight"])
        self.final = parameter(weights["finalNorm.weight"])
        self.layers = torch.nn.ModuleList()
        for l in range(L):
            own = lambda *names: torch.cat([weights[f"layers.{l}.{n}.weight"] for n in names])  # noqa: E731
            layer = torch.nn.Module()
            layer.qkv = parameter(own("query", "key", "value"))
            layer.out = parameter(own("attentionOutput"))
            layer.gate_up = parameter(own("gate", "up"))
            layer.down = parameter(own("down"))
            layer.norm1 = parameter(own("attentionNorm"))
            layer.norm2 = parameter(own("mlpNorm"))
            self.layers.append(layer)

    def forward(self, tokens, targets, cos, sin):
        x = F.embedding(tokens, self.embedding)
        for layer in self.layers:
            y = F.linear(F.rms_norm(x, (C,), layer.norm1, 1e-5), layer.qkv)
            q, k, v = y.view(B, T, 3, H, D).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True)
            x = x + F.linear(y.transpose(1, 2).reshape(B, T, C), layer.out)
            gate, up = F.linear(F.rms_norm(x, (C,), layer.norm2, 1e-5), layer.gate_up).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, layer.down)
        logits = F.linear(F.rms_norm(x, (C,), self.final, 1e-5), self.embedding)
        return F.cross_entropy(logits.view(B * T, -1), targets.reshape(B * T))


class Side:
    def __init__(self, mode):
        raw = torch.from_numpy(numpy.fromfile(setup["weights"], numpy.float32))
        weights, at = {}, 0
        for name, shape in setup["shapes"]:
            size = int(numpy.prod(shape))
            weights[name] = raw[at : at + size].view(shape).clone()
            at += size
        self.model = Model(weights)
        self.run = torch.compile(self.model) if mode == "compiled" else self.model
        matrices = [p for p in self.model.parameters() if p.ndim >= 2]
        rest = [p for p in self.model.parameters() if p.ndim < 2]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, fused=True)
        self.data = torch.from_numpy(numpy.fromfile(setup["tokens"], numpy.int64)).view(-1, 2, B, T)
        self.at = 0

    def step(self):
        tokens, targets = self.data[self.at % len(self.data)]
        self.at += 1
        loss = self.run(tokens, targets, COS, SIN)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()


sides = {}
print(json.dumps({"torch": torch.__version__}), flush=True)
for line in sys.stdin:
    mode, steps = line.split()
    if mode not in sides:
        sides[mode] = Side(mode)
    out = []
    for _ in range(int(steps)):
        began, cpu = time.perf_counter(), time.process_time()
        loss = sides[mode].step()
        out.append({"seconds": time.perf_counter() - began, "cpuSeconds": time.process_time() - cpu, "loss": loss})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"steps": out, "peakMemoryBytes": peak}), flush=True)

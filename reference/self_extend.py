"""Golden losses under Self-Extend: writes test/fixtures/self-extend.json.

Run by hand: python reference/self_extend.py [LONGLM]. Needs torch and transformers (versions are recorded in the output).
LONGLM is a checkout of https://github.com/datamllab/LongLM: with it the authors' own attention is run besides, and the
largest distance of its losses is recorded.

Jin et al. 2024 (2401.01325), section 3.2: a pair of query and key at distance d keeps d where d < W, and else has the
relative position floor(q/G) - floor(k/G) + W - floor(W/G). transformers runs the tiny models of
test/fixtures/checkpoints in float64; of it, the rotation is taken out, and attention is this file's: a score is the sum
over rotary pairs of (q1 k1 + q2 k2) cos(r w) + (q1 k2 - q2 k1) sin(r w) with the relative position r of that very pair
of tokens. Nothing is turned twice and merged, so a mistake in doing so would show. The same attention with r = d must
give what transformers gives by itself. Layers with a window keep their distances.
"""

import importlib
import json
import pathlib
import platform
import subprocess
import sys
import types

import torch
import transformers
from tiny_checkpoints import Float64
from transformers import AutoModelForCausalLM
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

ROOT = pathlib.Path(__file__).parent.parent / "test" / "fixtures"
FAMILIES = {
    # Family: (G, W) of its cases; all were trained at 64 tokens.
    "llama": [(4, 16), (8, 32), (3, 20), (2, 60)],  # grouped heads
    "qwen3": [(4, 16)],  # norms of queries and keys
    "gpt_neox": [(4, 16)],  # a quarter of the channels, biases, parallel blocks
    "cohere": [(4, 16)],  # interleaved channels
    "smollm3": [(4, 16)],  # layers without positions between
    "gemma2": [(4, 16)],  # a soft cap on scores; every other layer has a window
    "gemma3": [(4, 16)],  # layers with a window have their own frequencies; linear scaling in the others
}
TOKENS = 160
chosen = {"map": None}


def relative(count):
    q = torch.arange(count)[:, None]
    k = torch.arange(count)[None, :]
    return q - k


def self_extend(d, group, window):
    count = d.shape[0]
    q, k = torch.arange(count)[:, None], torch.arange(count)[None, :]
    far = q // group - k // group + window - window // group
    return torch.where(d < window, d, far)


def layer_rope(module):
    """theta, what divides frequencies, rotary channels, and whether pairs are neighbours; None: no positions."""
    config = module.config
    if not getattr(module, "use_rope", True):
        return None
    rope = config.rope_parameters
    types_of = getattr(config, "layer_types", None)
    if types_of and types_of[module.layer_idx] in rope:
        rope = rope[types_of[module.layer_idx]]
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    assert rope["rope_type"] in ("default", "linear")  # linear names no shorter length: it is what was trained
    return rope["rope_theta"], rope.get("factor", 1.0), int(head * rope.get("partial_rotary_factor", 1.0)), config.model_type.startswith("cohere")


def pairs(module, query, key, value, attention_mask, scaling=None, dropout=0.0, softcap=None, sliding_window=None, **_):
    """Attention of queries and keys that nothing has turned. [1, H, T, D] to [1, T, H, D]."""
    heads, count, head = query.shape[1:]
    repeat = heads // key.shape[1]
    key, value = key.repeat_interleave(repeat, 1), value.repeat_interleave(repeat, 1)
    d = relative(count)
    rope = layer_rope(module)
    window = sliding_window if sliding_window is not None else getattr(module, "sliding_window", None)
    if rope is None:
        scores = query @ key.transpose(-1, -2)
    else:
        theta, factor, channels, interleaved = rope
        r = d if chosen["map"] is None or window is not None else self_extend(d, *chosen["map"])
        scores = query[..., channels:] @ key[..., channels:].transpose(-1, -2)
        for i in range(channels // 2):
            a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + channels // 2)
            angle = r.double() * (1.0 / theta ** (2 * i / channels) / factor)
            q1, q2 = query[..., a][..., :, None], query[..., b][..., :, None]
            k1, k2 = key[..., a][..., None, :], key[..., b][..., None, :]
            scores = scores + (q1 * k1 + q2 * k2) * angle.cos() + (q1 * k2 - q2 * k1) * angle.sin()
    scores = scores * (head**-0.5 if scaling is None else scaling)
    if softcap:
        scores = torch.tanh(scores / softcap) * softcap
    hidden = d < 0 if window is None else (d < 0) | (d >= window)
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    return (weights @ value).transpose(1, 2), None


ALL_ATTENTION_FUNCTIONS.register("pairs", pairs)


def load(family, attention):
    folder = ROOT / "checkpoints" / family
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation=attention)
    return model.eval()


def losses(model, ids):
    with torch.no_grad(), Float64():
        logits = model(torch.tensor([ids]), use_cache=False).logits[0]
    log_p = logits.log_softmax(-1)
    return -log_p[torch.arange(len(ids) - 1), torch.tensor(ids[1:])]


def authors(folder, ids, group, window):
    """The losses of the tiny Llama with the authors' attention in every layer."""
    from transformers.models.llama import modeling_llama

    source = (pathlib.Path(folder) / "self_extend_patch" / "Llama.py").read_text()
    begin, end = source.index("def repeat_kv"), source.index("def flash_self_extend_forward")
    space = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "math": __import__("math"), "np": __import__("numpy")}
    exec("from typing import *\nCache = object\n" + source[begin:end], space)
    model = load("llama", "eager")
    config = model.config
    omega = 1.0 / config.rope_parameters["rope_theta"] ** (torch.arange(0, config.head_dim, 2).double() / config.head_dim)

    def rotary(_, positions, seq_len=None):
        angles = positions[..., None].double() * omega
        angles = torch.cat([angles, angles], -1)
        return angles.cos(), angles.sin()

    count = len(ids)
    mask = torch.zeros(1, 1, count, count, dtype=torch.float64).masked_fill(relative(count) < 0, -torch.inf)
    positions = torch.arange(count)[None]

    def forward(self, hidden_states, **_):
        out, weights, _ = space["self_extend_forward"](
            self, hidden_states, mask, positions, group_size_1=group, group_size_2=window
        )
        return out, weights

    for layer in model.model.layers:
        one = layer.self_attn
        one.config.pretraining_tp = 1
        one.num_heads, one.num_key_value_heads = config.num_attention_heads, config.num_key_value_heads
        one.hidden_size, one.rotary_emb = config.num_attention_heads * config.head_dim, rotary
        one.forward = types.MethodType(forward, one)
    assert modeling_llama.LlamaAttention.forward is not forward
    return losses(model, ids)


def main():
    generator = torch.Generator().manual_seed(2401)
    ids = torch.randint(3, 96, (TOKENS,), generator=generator).tolist()
    longlm = sys.argv[1] if len(sys.argv) > 1 else None
    out = {
        "generator": "reference/self_extend.py",
        "versions": {
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "tokens": ids,
        "families": {},
    }
    if longlm is not None:
        commit = subprocess.check_output(["git", "-C", longlm, "rev-parse", "HEAD"], text=True).strip()
        out["versions"]["LongLM"] = commit
    for family, sizes in FAMILIES.items():
        own = losses(load(family, "eager"), ids)
        model = load(family, "pairs")
        code = importlib.import_module(type(model).__module__)
        turn = code.apply_rotary_pos_emb
        code.apply_rotary_pos_emb = lambda q, k, *_, **__: (q, k)
        cases = []
        try:
            chosen["map"] = None
            plain = losses(model, ids)
            assert (plain - own).abs().max() < 5e-5, (family, (plain - own).abs().max())
            for group, window in sizes:
                chosen["map"] = (group, window)
                got = losses(model, ids)
                assert (got - plain)[: window - 1].abs().max() < 1e-12 or family == "gemma2"
                case = {
                    "groupSize": group,
                    "neighborWindow": window,
                    "moved": float(f"{(got - plain).abs().mean():.3g}"),
                    "losses": [float(f"{x:.9g}") for x in got.tolist()],
                }
                cases.append(case)
        finally:
            code.apply_rotary_pos_emb = turn
        if family == "llama" and longlm is not None:
            for case in cases:
                group, window = case["groupSize"], case["neighborWindow"]
                if window % group:
                    continue  # the authors divide W by G without rounding
                apart = (authors(longlm, ids, group, window) - torch.tensor(case["losses"])).abs().max()
                assert apart < 1e-6, (group, window, apart)
                case["authors"] = float(f"{apart:.1g}")
        out["families"][family] = cases
        print(family, [(c["groupSize"], c["neighborWindow"], c["moved"], c.get("authors")) for c in cases])
    (ROOT / "self-extend.json").write_text(json.dumps(out) + "\n")


main()

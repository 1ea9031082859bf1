"""Queries and keys of the first layer of a tiny Llama: writes test/fixtures/first-layer.json.

Run by hand: python reference/first_layer.py. Needs torch and transformers (versions are recorded in the output). The
model is transformers' own class on test/fixtures/checkpoints/llama, in float64 (its norm in float32 all the same): its embedding, the layer's own norm and
projections. And one score: query and key rotated by transformers' apply_rotary_pos_emb.
"""

import json
import pathlib

import torch
import transformers
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

root = pathlib.Path(__file__).parent.parent
model = transformers.AutoModelForCausalLM.from_pretrained(root / "test/fixtures/checkpoints/llama", dtype=torch.float64)
layer = model.model.layers[0]
config = model.config
heads, size = config.num_attention_heads, config.head_dim
tokens = [5, 16]
with torch.no_grad():
    x = layer.input_layernorm(model.model.embed_tokens(torch.tensor([tokens])))
    query = layer.self_attn.q_proj(x).view(1, 2, heads, size).transpose(1, 2)
    key = layer.self_attn.k_proj(x).view(1, 2, config.num_key_value_heads, size).transpose(1, 2)
    # What each query head sees.
    key = key.repeat_interleave(heads // config.num_key_value_heads, 1)
    # The query of the first token at 40, the key of the second at 7.
    omega = 1.0 / (config.rope_parameters["rope_theta"] ** (torch.arange(0, size, 2, dtype=torch.float64) / size))
    angles = torch.tensor([40.0, 7.0], dtype=torch.float64)[:, None] * omega
    angles = torch.cat([angles, angles], -1)[None]
    q, k = apply_rotary_pos_emb(query, key, angles.cos(), angles.sin())
    scores = (q[0, :, 0] * k[0, :, 1]).sum(-1) / size**0.5

out = {
    "generator": "reference/first_layer.py",
    "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    "tokens": tokens,
    "head": heads - 1,
    "size": size,
    "theta": config.rope_parameters["rope_theta"],
    "query": [[float(f"{v:.12g}") for v in query[0, -1, t].tolist()] for t in range(2)],
    "key": [[float(f"{v:.12g}") for v in key[0, -1, t].tolist()] for t in range(2)],
    "places": [40, 7],
    "scores": [float(f"{v:.12g}") for v in scores.tolist()],
}
(root / "test/fixtures/first-layer.json").write_text(json.dumps(out) + "\n")

"""Writes test/fixtures/training-exports.json: what transformers, and a model written from docs/longhand-form.md, make of
the folders that training exports.

    node --import ./scripts/ts-hook.mjs test/support/write-exports.ts FOLDER
    python reference/training_exports.py FOLDER

Per folder: the losses of token i+1 given tokens 0..i, for 24 tokens (the trained length) and 60. Folders of a class of
transformers are loaded by AutoModelForCausalLM from what is written, every weight there and none left over, and run in
float64. Folders of the own form are run by `Longhand` below: plain torch in float64, after the document alone; T5's buckets
are transformers'. `Longhand` also runs every Llama and SmolLM3 folder, as a check of itself, and adds the temperature that
transformers does not know.

Tokenizers: the ids that AutoTokenizer gives for some texts, which are bytes, and their text again.
"""

import json
import math
import pathlib
import platform
import sys

import torch
import transformers
from safetensors.torch import load_file
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.t5.modeling_t5 import T5Attention

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
torch.set_num_threads(1)

LENGTHS = (24, 60)
TEXTS = ["", "Call me Ishmael.", "  two  spaces\r\n\ttab", "é 永字八法 🙂", "<eos>", "a\u0000b", "<|im_start|>user"]


def losses(logits, tokens):
    return F.cross_entropy(logits[:-1].double(), torch.tensor(tokens[1:]), reduction="none").tolist()


class Longhand:
    """A model in the own form; a Llama, Qwen 3 or SmolLM3 is read as one."""

    def __init__(self, folder):
        self.c = json.loads((folder / "config.json").read_text())
        self.w = {k: v.double() for k, v in load_file(folder / "model.safetensors").items()}
        self.used = set()
        c = self.c
        self.entries = c.get("position_encoding")
        if self.entries is None:
            rotates = c.get("no_rope_layers", [1] * c["num_hidden_layers"])
            rope = {"type": "rope", "rope_parameters": c["rope_parameters"]}
            none = {"type": "none"}
            if "longhand_logit_temperature" in c:
                none["logit_temperature"] = c["longhand_logit_temperature"]
            self.entries = [{"layers": [i], **(rope if on else none)} for i, on in enumerate(rotates)]
            c["norm_eps"] = c["rms_norm_eps"]
            c["query_key_norm"] = c["model_type"] == "qwen3"
        self.entry = {layer: entry for entry in self.entries for layer in entry["layers"]}

    def weight(self, name):
        self.used.add(name)
        return self.w[name]

    def norm(self, x, name, eps):
        if self.c.get("norm_type", "rms") == "rms":
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * self.weight(f"{name}.weight")
        bias = self.weight(f"{name}.bias") if self.c["use_bias"] else None
        return F.layer_norm(x, x.shape[-1:], self.weight(f"{name}.weight"), bias, eps)

    def linear(self, x, name):
        bias = self.weight(f"{name}.bias") if self.c.get("use_bias") else None
        return F.linear(x, self.weight(f"{name}.weight"), bias)

    def act(self, x):
        return {"silu": F.silu, "gelu": F.gelu, "gelu_new": lambda y: F.gelu(y, approximate="tanh"), "relu": F.relu}[
            self.c["hidden_act"]
        ](x)

    def rows(self, T):
        C = self.c["hidden_size"]
        for entry in self.entries:
            if entry["type"] == "learned":
                return self.weight("model.embed_positions.weight")[:T]
            if entry["type"] == "sinusoidal":
                half = C // 2
                steps = half if entry["exponent"] == "vaswani" else half - 1
                angle = torch.arange(T).double()[:, None] * entry["theta"] ** (-torch.arange(half).double() / steps)
                pair = (angle.sin(), angle.cos())
                return torch.cat(pair, -1) if entry["layout"] == "concatenated" else torch.stack(pair, -1).flatten(1)
        return torch.zeros(T, C).double()

    def turn(self, x, entry, T):
        """[H, T, D]"""
        p = entry["rope_parameters"]
        D = x.shape[-1]
        if p["rope_type"] == "default":
            inv, factor = p["rope_theta"] ** (-torch.arange(0, D, 2).double() / D), 1.0
        else:
            config = transformers.LlamaConfig(
                hidden_size=self.c["hidden_size"],
                num_attention_heads=self.c["num_attention_heads"],
                head_dim=D,
                max_position_embeddings=self.c["max_position_embeddings"],
                rope_parameters=p,
            )
            inv, factor = ROPE_INIT_FUNCTIONS[p["rope_type"]](config, "cpu", seq_len=T)
            inv = inv.double()
        angle = torch.arange(T).double()[:, None] * inv
        cos, sin = angle.cos() * factor, angle.sin() * factor
        if entry.get("layout", "half") == "half":
            a, b = x[..., : D // 2], x[..., D // 2 :]
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)

    def bias(self, layer, T):
        """[H, T, T]"""
        entry, H = self.entry[layer], self.c["num_attention_heads"]
        owner = layer if entry.get("every_layer", True) else entry["layers"][0]
        name = f"model.layers.{owner}.self_attn."
        i = torch.arange(T)
        d = (i[:, None] - i[None]).clamp(min=0).double()
        if entry["type"] == "alibi":
            slopes = torch.tensor([2.0 ** (-entry["max_bias"] * (h + 1) / H) for h in range(H)]).double()
            return -slopes[:, None, None] * d
        if entry["type"] == "t5":
            bucket = T5Attention._relative_position_bucket(
                i[None] - i[:, None], False, entry["num_buckets"], entry["max_distance"]
            )
            return self.weight(f"{name}relative_attention_bias.weight")[bucket].permute(2, 0, 1)
        if entry["type"] == "kerple":
            r1, r2 = (self.weight(f"{name}kerple.{k}")[:, None, None] for k in ("r1", "r2"))
            return -r1 * (torch.log(1 + r2 * d) if entry["variant"] == "logarithmic" else d**r2)
        if entry["type"] == "fire":
            c, threshold = self.weight(f"{name}fire.c"), self.weight(f"{name}fire.threshold")
            bottom = torch.log(c * torch.maximum(i.double(), threshold) + 1)[:, None] + 1e-6
            x = (torch.log(c * d + 1) / bottom)[..., None]
            at = f"{name}fire.layers."
            x = F.relu(F.linear(x, self.weight(f"{at}0.weight"), self.weight(f"{at}0.bias")))
            return F.linear(x, self.weight(f"{at}1.weight"), self.weight(f"{at}1.bias")).permute(2, 0, 1)
        return torch.zeros(H, T, T).double()

    def __call__(self, tokens):
        c, T = self.c, len(tokens)
        H, K, D = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        eps = c["norm_eps"]
        embedding = self.weight("model.embed_tokens.weight")
        x = embedding[torch.tensor(tokens)] * c.get("embedding_scale", 1) + self.rows(T)
        if c.get("embedding_norm"):
            x = self.norm(x, "model.embed_norm", eps)
        for layer in range(c["num_hidden_layers"]):
            entry, name = self.entry[layer], f"model.layers.{layer}."
            y = self.norm(x, f"{name}input_layernorm", eps)
            heads = lambda part, n: self.linear(y, f"{name}self_attn.{part}_proj").view(T, n, D).transpose(0, 1)
            q, k, v = heads("q", H), heads("k", K), heads("v", K)
            if c.get("query_key_norm"):
                q, k = (self.norm(z, f"{name}self_attn.{part}_norm", eps) for z, part in ((q, "q"), (k, "k")))
            if entry["type"] == "rope":
                q, k = (self.turn(z, entry, T) for z in (q, k))
            temperature = entry.get("logit_temperature")
            if temperature is not None and T > temperature["trained_length"]:
                q = q * (1 + temperature["coefficient"] * math.log(T / temperature["trained_length"]))
            k, v = (z.repeat_interleave(H // K, 0) for z in (k, v))
            scores = q @ k.transpose(1, 2) * c.get("attention_scale", D**-0.5) + self.bias(layer, T)
            i = torch.arange(T)
            seen = i[:, None] >= i[None]
            if "sliding_window" in entry:
                seen &= i[:, None] - i[None] < entry["sliding_window"]
            weights = scores.masked_fill(~seen, -math.inf).softmax(-1)
            x = x + self.linear((weights @ v).transpose(0, 1).reshape(T, H * D), f"{name}self_attn.o_proj")
            y = self.norm(x, f"{name}post_attention_layernorm", eps)
            up = self.linear(y, f"{name}mlp.up_proj")
            plain = c.get("mlp_type") == "plain"
            middle = self.act(up) if plain else self.act(self.linear(y, f"{name}mlp.gate_proj")) * up
            x = x + self.linear(middle, f"{name}mlp.down_proj")
        x = self.norm(x, "model.norm", eps)
        logits = x @ (embedding if c["tie_word_embeddings"] else self.weight("lm_head.weight")).T
        assert self.used == set(self.w), set(self.w) ^ self.used
        return logits


def by_transformers(folder, tokens):
    model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    tied = {"lm_head.weight"} if model.config.tie_word_embeddings else set()
    assert not set(info["missing_keys"]) - tied and not info["unexpected_keys"] and not info["mismatched_keys"], info
    with torch.no_grad():
        return losses(model.double().eval()(torch.tensor([tokens])).logits[0], tokens), type(model).__name__


def main():
    root = pathlib.Path(sys.argv[1])
    all_tokens = json.loads((root / "tokens.json").read_text())
    cases = []
    for folder in sorted(path.parent for path in root.glob("*/config.json")):
        if folder.name.startswith("bytes-"):
            continue
        config = json.loads((folder / "config.json").read_text())
        case = {"name": folder.name, "runner": "Longhand", "losses": {}}
        for length in LENGTHS:
            tokens = all_tokens[:length]
            own = config["model_type"] in ("longhand", "llama", "qwen3", "smollm3")
            ours = losses(Longhand(folder)(tokens), tokens) if own and fits(config, length) else None
            if config["model_type"] == "longhand":
                if ours is not None:
                    case["losses"][length] = ours
                continue
            if not fits(config, length):
                continue
            case["losses"][length], case["runner"] = by_transformers(folder, tokens)
            if "longhand_logit_temperature" in config:
                case.setdefault("withTemperature", {})[length] = ours
            elif ours is not None:
                far = max(abs(a - b) for a, b in zip(ours, case["losses"][length]))
                print(folder.name, length, f"{far:.1e}")
                assert far < 1e-4, folder.name
        cases.append(case)
    tokenizers = []
    for folder in sorted(root.glob("bytes-*")):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        specials = {token: tokenizer.convert_tokens_to_ids(token) for token in tokenizer.all_special_tokens}
        ids = [tokenizer(text).input_ids for text in TEXTS]
        for text, row in zip(TEXTS, ids):
            plain = [i for i in row if i < 256]
            assert bytes(plain) == text.encode() or any(i >= 256 for i in row), (text, row)
            assert tokenizer.decode(plain) == bytes(plain).decode()
        bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
        tokenizers.append({"name": folder.name, "bos": bos, "eos": eos, "specials": specials, "ids": ids})
    round6 = lambda table: {k: [round(x, 6) for x in v] for k, v in table.items()}
    for case in cases:
        for key in ("losses", "withTemperature"):
            if key in case:
                case[key] = round6(case[key])
    versions = {"python": platform.python_version(), "torch": torch.__version__, "transformers": transformers.__version__}
    out = {"generator": "reference/training_exports.py", "versions": versions, "cases": cases}
    out |= {"texts": TEXTS, "tokenizers": tokenizers}
    path = pathlib.Path(__file__).parent.parent / "test/fixtures/training-exports.json"
    lines = json.dumps(out, ensure_ascii=False, separators=(",", ":"))
    path.write_text(lines.replace('{"name"', '\n{"name"') + "\n")


def fits(config, length):
    """Whether a model has positions for so many tokens. MPT's class makes its bias as long as it was trained."""
    rows = [e["num_positions"] for e in config.get("position_encoding", []) if e["type"] == "learned"]
    return length <= min([config.get("n_positions", length), config.get("max_seq_len", length), *rows])


main()

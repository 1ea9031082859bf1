"""Writes test/fixtures/checkpoints/<family>/: a tiny random checkpoint of every family, and what transformers makes of it.

    python reference/tiny_checkpoints.py [FAMILY...]      (transformers 5.24.0, torch CPU; versions are recorded inside)

config.json and model.safetensors are what save_pretrained writes (T5 with an own head: see `save`). golden.json holds
cases: tokens, the loss of token i+1 given tokens 0..i, the logits after the last token, and 16 greedy tokens.

Weights have standard deviation 0.3 to 0.5, so that logits are far from uniform and positions matter; `positions` says
by how much losses change when distances do. Texts are random ids: 40 tokens are fewer than the trained length (64),
160 more; sliding windows (24) are shorter than both.

Columns: `losses` by the default attention in float32; `losses64` by eager attention with every float32 of the source
replaced by float64, angles and norms included, so the distance of the two is what float32 costs. Greedy tokens are
those of a full pass for every token (one table for the whole sequence); where no table depends on the length, the
same loop with transformers' key/value cache must give the same tokens, and no choice is closer than MARGIN.
"""

import json
import math
import os
import pathlib
import platform
import sys
import warnings
import zlib

os.environ["TRANSFORMERS_VERBOSITY"] = "critical"
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.overrides import TorchFunctionMode
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

transformers.logging.disable_progress_bar()
torch.set_num_threads(1)
warnings.filterwarnings("ignore", category=FutureWarning, message=".*past_key_values")

ROOT = pathlib.Path(__file__).parent.parent / "test" / "fixtures" / "checkpoints"
VERSIONS = {"transformers": transformers.__version__, "torch": torch.__version__, "python": platform.python_version()}

TRAINED = 64
SHORT, LONG = 40, 160
WINDOW = 24
GREEDY = 16
MARGIN = 3e-3  # least distance of the two highest logits at a greedy step
SEED_TRIES = 40

TOKENS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


class Float64(TorchFunctionMode):
    """Runs code that names float32 in float64."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        def wide(value):
            if value is torch.float32:
                return torch.float64
            if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
                return type(value)(map(wide, value)) if any(v is torch.float32 for v in value) else value
            return value

        if func is torch.Tensor.float:
            func = torch.Tensor.double
        kwargs = {k: wide(v) for k, v in (kwargs or {}).items()}
        return func(*map(wide, args), **kwargs)


# ---------------------------------------------------------------- weights


def seed_of(*parts):
    return zlib.crc32("/".join(map(str, parts)).encode())


def draw(family, name, parameter, rules):
    """One random parameter: a matrix around 0, a norm's weight around 1 (or 0 where the model adds 1)."""
    generator = torch.Generator().manual_seed(seed_of(family, name))
    noise = torch.randn(parameter.shape, generator=generator)
    last = name.rsplit(".", 1)[-1]
    parent = name.rsplit(".", 2)[-2]
    for part, scale in rules.get("std", {}).items():
        if part in name:
            return scale * noise
    if last == "bias":
        return 0.3 * noise
    if parameter.ndim == 1 or "norm" in parent or parent.startswith("ln_"):
        return (0.0 if rules.get("norm_adds_one") else 1.0) + 0.25 * noise
    return (0.4 if "emb" in name or "wte" in name or "wpe" in name or "lm_head" in name else 0.3) * noise


def save(family, spec):
    """Makes the folder: config.json and model.safetensors."""
    folder = ROOT / family
    folder.mkdir(parents=True, exist_ok=True)
    config = CONFIG_MAPPING[spec["type"]].from_dict(dict(spec["config"]))
    model = auto(spec).from_config(config)
    state = {}
    for name, parameter in model.named_parameters():
        value = draw(family, name, parameter, spec).to(spec["dtype"])
        parameter.data = value
        state[name] = value
    model.to(spec["dtype"]).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if spec.get("own_head"):
        # T5 1.1 and mT5: transformers 5 ties what it builds, but reads the head that released files carry.
        path = folder / "model.safetensors"
        state = load_file(path)
        shape = state["shared.weight"]
        state["lm_head.weight"] = draw(family, "lm_head.weight", shape, {}).to(spec["dtype"])
        save_file(state, path, metadata={"format": "pt"})
        saved = json.loads((folder / "config.json").read_text())
        saved["tie_word_embeddings"] = False
        (folder / "config.json").write_text(json.dumps(saved, indent=2, sort_keys=True) + "\n")
    saved = json.loads((folder / "config.json").read_text())
    return folder, saved


# ---------------------------------------------------------------- running


def auto(spec):
    return AutoModelForSeq2SeqLM if spec.get("seq2seq") else AutoModelForCausalLM


def load(spec, folder, overrides, double):
    settings = json.loads((folder / "config.json").read_text())
    for key, value in overrides.items():
        settings[key] = value
    config = CONFIG_MAPPING[settings["model_type"]].from_dict(settings)
    options = {"config": config, "output_loading_info": True}
    if double or spec.get("eager"):
        options["attn_implementation"] = "eager"
    kind = torch.float64 if double else torch.float32
    torch.set_default_dtype(kind)
    try:
        model, report = auto(spec).from_pretrained(folder, dtype=kind, **options)
    finally:
        torch.set_default_dtype(torch.float32)
    assert not report["missing_keys"] and not report["unexpected_keys"], report
    assert not report["mismatched_keys"], report
    if spec.get("own_head"):
        assert model.lm_head.weight.data_ptr() != model.shared.weight.data_ptr()
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        assert not tensor.is_floating_point() or tensor.dtype == kind, (name, tensor.dtype)
    return model.eval()


def drop_positions(model):
    """cos 1, sin 0 in every rotary module."""
    found = 0
    for module in model.modules():
        if type(module).__name__.endswith("RotaryEmbedding"):
            module.register_forward_hook(lambda m, i, out: (torch.ones_like(out[0]), torch.zeros_like(out[1])))
            found += 1
    assert found


class Runner:
    """A model under a setting, in float32 or float64. Every call is a full pass on fresh tables."""

    def __init__(self, spec, folder, overrides, double=False, drop=False, change=None):
        self.spec, self.double = spec, double
        with self.mode():
            self.model = load(spec, folder, overrides, double)
            if drop:
                spec.get("without_positions", drop_positions)(self.model)
            if change:
                change(self.model)

    def mode(self):
        return Float64() if self.double else torch.no_grad()

    @torch.no_grad()
    def logits(self, tokens, encoder=None, positions=None):
        # transformers keeps a grown dynamic table: results would depend on earlier calls.
        for module in self.model.modules():
            if type(module).__name__.endswith("RotaryEmbedding"):
                for name in [n for n in vars(module) if n.endswith("max_seq_len_cached")]:
                    limit = module.config.max_position_embeddings
                    if getattr(module, name) != limit:
                        setattr(module, name, limit)
                        prefix = name[: -len("max_seq_len_cached")]
                        original = getattr(module, f"{prefix}original_inv_freq")
                        module.register_buffer(f"{prefix}inv_freq", original.clone(), persistent=False)
        ids = torch.tensor([tokens])
        with self.mode():
            if encoder is not None:
                out = self.model(input_ids=torch.tensor([encoder]), decoder_input_ids=ids, use_cache=False)
            else:
                more = {}
                if positions is not None:
                    # The mask keeps positions that do not grow by one from being taken for packed texts.
                    more = {"position_ids": torch.tensor([positions]), "attention_mask": torch.ones_like(ids)}
                out = self.model(input_ids=ids, use_cache=False, **more)
        assert out.logits.dtype == (torch.float64 if self.double else torch.float32)
        return out.logits[0]

    def losses(self, tokens, encoder=None, positions=None, growing_from=None):
        logits = self.logits(tokens, encoder, positions)
        if growing_from is not None:
            logits = logits.clone()
            for end in range(1, len(tokens)):
                if end <= growing_from:
                    logits[:growing_from] = self.logits(tokens[:growing_from])
                else:
                    logits[end - 1] = self.logits(tokens[:end])[-1]
        return torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(tokens[1:]), reduction="none"), logits[-1]

    def greedy(self, tokens, encoder=None):
        tokens, margin, start = list(tokens), math.inf, len(tokens)
        for _ in range(GREEDY):
            top = self.logits(tokens, encoder)[-1].topk(2)
            margin = min(margin, float(top.values[0] - top.values[1]))
            tokens.append(int(top.indices[0]))
        return tokens[start:], margin

    @torch.no_grad()
    def greedy_cached(self, tokens, encoder=None):
        more = {} if encoder is None else {"encoder_outputs": self.model.get_encoder()(torch.tensor([encoder]))}
        key = "input_ids" if encoder is None else "decoder_input_ids"
        step, past, out = torch.tensor([tokens]), None, []
        for _ in range(GREEDY):
            answer = self.model(**{key: step}, past_key_values=past, use_cache=True, **more)
            past = answer.past_key_values
            out.append(int(answer.logits[0, -1].argmax()))
            step = torch.tensor([[out[-1]]])
        return out


def text_of(family, name, length, vocabulary, attempt=0):
    draws = np.random.default_rng(seed_of(family, name, length, attempt))
    return [int(t) for t in draws.integers(0, vocabulary, length)]


def float32_list(tensor):
    """Shortest decimals that give back every float32."""
    return [float(str(v)) for v in tensor.to(torch.float32).numpy()]


def float64_list(tensor):
    return [round(float(v), 10) for v in tensor]


def changes_with_length(scaling):
    entries = [scaling, *(v for v in scaling.values() if isinstance(v, dict))] if scaling else []
    return any(entry.get("rope_type") in ("dynamic", "longrope") for entry in entries)


def run_case(family, spec, folder, saved, case):
    vocabulary = saved["vocab_size"]
    scaling, overrides = case.get("scaling"), dict(case.get("config", {}))
    drop = scaling == "drop"
    if scaling and not drop:
        overrides["rope_parameters"] = scaling
    narrow = Runner(spec, folder, overrides, drop=drop)
    wide = Runner(spec, folder, overrides, double=True, drop=drop, change=spec.get("change_eager"))
    for attempt in range(SEED_TRIES):
        encoder = None
        if spec.get("seq2seq"):
            encoder = text_of(family, "encoder", case["encoder"], vocabulary, attempt)
            tokens = [0, *text_of(family, "decoder", case["length"] - 1, vocabulary, attempt)]
        else:
            tokens = text_of(family, "text", case["length"], vocabulary, attempt)
        greedy, margin = narrow.greedy(tokens, encoder)
        if margin > MARGIN and wide.greedy(tokens, encoder)[0] == greedy:
            break
    else:
        raise AssertionError(f"{family}, {case['name']}: no text with a greedy margin above {MARGIN}")
    settings = saved.get("rope_parameters") if scaling is None else scaling
    if drop or not changes_with_length(settings):
        assert narrow.greedy_cached(tokens, encoder) == greedy, (family, case["name"], "cache")

    growing_from = TRAINED if case.get("reading") == "growing" else None
    losses, last = narrow.losses(tokens, encoder, growing_from=growing_from)
    losses64, _ = wide.losses(tokens, encoder, growing_from=growing_from)
    assert bool(torch.isfinite(losses).all())
    rounding = float((losses.double() - losses64).abs().max())
    assert rounding < 6e-5, (family, case["name"], rounding)
    texts = {"tokens": tokens} if encoder is None else {"tokens": encoder, "decoderTokens": tokens}
    kept = {key: case[key] for key in ("config", "reading") if key in case}
    return rounding, {
        "name": case["name"], "scaling": scaling, **kept, **texts, "greedy": greedy,
        "losses": float32_list(losses), "losses64": float64_list(losses64), "lastLogits": float32_list(last),
    }


def position_effect(family, spec, folder, saved):
    """Mean change of the losses when distances change: a floor under what a wrong encoding would do."""
    vocabulary = saved["vocab_size"]
    plain = Runner(spec, folder, {})
    if spec.get("seq2seq"):
        texts = (text_of(family, "decoder", SHORT, vocabulary), text_of(family, "encoder", SHORT, vocabulary))
    else:
        texts = (text_of(family, "text", SHORT, vocabulary), None)
    before = plain.losses(*texts)[0]
    if "without_positions" in spec:
        after = Runner(spec, folder, {}, change=spec["without_positions"]).losses(*texts)[0]
    else:
        after = plain.losses(*texts, positions=[min(2 * i, TRAINED - 1) for i in range(SHORT)])[0]
    return float((after - before).abs().mean())


def make(family):
    spec = FAMILIES[family]
    folder, saved = save(family, spec)
    cases, worst = [], 0.0
    for case in spec["cases"]:
        rounding, row = run_case(family, spec, folder, saved, case)
        worst = max(worst, rounding)
        cases.append(row)
    mean = float(np.mean([np.mean(row["losses"]) for row in cases]))
    effect = position_effect(family, spec, folder, saved)
    assert mean > math.log(saved["vocab_size"]) + 0.5, (family, mean)
    assert effect > 0.05, (family, effect)
    golden = {
        "generator": "reference/tiny_checkpoints.py", "versions": VERSIONS, "family": family,
        "storage": str(spec["dtype"]).removeprefix("torch."),
        "rounding": round(worst, 9), "positions": round(effect, 4), "cases": cases,
    }
    lines = json.dumps(golden, separators=(",", ":")).replace('{"name"', '\n{"name"')
    (folder / "golden.json").write_text(lines + "\n")
    sizes = ", ".join(f"{p.name} {p.stat().st_size:,}" for p in sorted(folder.iterdir()) if p.is_file())
    print(f"{family}: {len(cases)} cases, mean loss {mean:.2f} (uniform {math.log(saved['vocab_size']):.2f}), "
          f"rounding {worst:.1e}, positions {effect:.2f}; {sizes}", flush=True)


# ---------------------------------------------------------------- families


def ramp(pairs, top):
    return [round(1 + (top - 1) * (i / (pairs - 1)) ** 2, 4) for i in range(pairs)]


def scalings(theta, pairs, **more):
    """Every type that transformers computes for any model, for an extension from 64 tokens."""
    def rope(kind, **settings):
        return {"rope_type": kind, "rope_theta": theta, **settings, **more}

    return {
        "default": rope("default"),
        "linear": rope("linear", factor=4.0),
        "dynamic": rope("dynamic", factor=2.0),
        "yarn": rope("yarn", factor=4.0, original_max_position_embeddings=TRAINED),
        "llama3": rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                       original_max_position_embeddings=TRAINED),
        "longrope": rope("longrope", factor=4.0, original_max_position_embeddings=TRAINED,
                         short_factor=ramp(pairs, 1.5), long_factor=ramp(pairs, 6.0)),
    }


def plain_cases():
    return [{"name": "short", "length": SHORT}, {"name": "long", "length": LONG}]


def rope_cases(table, drop=True, growing=False, leave_out=()):
    """The file's own setting, then every other, below and above the trained length."""
    cases = plain_cases()
    for name, scaling in table.items():
        if name in leave_out:
            continue
        for length in (SHORT, LONG):
            cases.append({"name": f"{name}, {'short' if length == SHORT else 'long'}", "scaling": scaling, "length": length})
        if name == "dynamic" and growing:
            cases.append({"name": "dynamic, long, growing", "scaling": scaling, "length": LONG, "reading": "growing"})
        if name == "longrope":
            cases.append({"name": "longrope, crossing", "scaling": scaling, "length": TRAINED - 8})
    if drop:
        cases.append({"name": "drop, long", "scaling": "drop", "length": LONG})
    return cases


def decoder(**more):
    return {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": TRAINED,
            **TOKENS, **more}


def falcon(**more):
    return {"vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
            "max_position_embeddings": TRAINED, **TOKENS, **more}


def default_rope(theta=1e4, **more):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta, **more}}


SCALED = scalings(1e4, 8)

GEMMA3_LOCAL = {"rope_type": "default", "rope_theta": 1e4}


def gemma3_scalings():
    return {name: {"full_attention": full, "sliding_attention": GEMMA3_LOCAL}
            for name, full in scalings(1e6, 8).items()}


def without_alibi(model):
    """ALiBi's bias, which both classes hand to every block by name, becomes 0."""
    def zero(module, args, kwargs):
        return args, {k: v * 0 if k in ("alibi", "position_bias") else v for k, v in kwargs.items()}

    for module in model.modules():
        if type(module).__name__ in ("BloomBlock", "MptBlock"):
            module.register_forward_pre_hook(zero, with_kwargs=True)


def falcon_bias(keep):
    """Falcon's model puts ALiBi into the mask, and its eager attention adds it a second time: once is what is meant."""
    def change(model):
        def once(module, args, kwargs):
            mask = kwargs["attention_mask"]
            if not keep:
                mask = mask.where(mask < -1e9, torch.zeros_like(mask))
            return args, {**kwargs, "alibi": kwargs["alibi"] * 0, "attention_mask": mask}

        for module in model.modules():
            if type(module).__name__ == "FalconDecoderLayer":
                module.register_forward_pre_hook(once, with_kwargs=True)

    return change


def without_parameter(part):
    def change(model):
        found = [p for name, p in model.named_parameters() if part in name]
        assert found
        for parameter in found:
            parameter.data.zero_()

    return change


def t5(**more):
    return {"vocab_size": 96, "d_model": 32, "d_kv": 16, "d_ff": 64, "num_heads": 2, "num_layers": 2,
            "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1, **more}


T5 = {
    "seq2seq": True,
    # T5 does not divide by sqrt(d_kv): its queries are trained that much smaller.
    "std": {"relative_attention_bias": 1.0, "Attention.q": 0.1},
    "without_positions": without_parameter("relative_attention_bias"),
    "cases": [
        {"name": "short", "encoder": SHORT, "length": 24},
        {"name": "long", "encoder": LONG, "length": 100},
        {"name": "long decoder", "encoder": 8, "length": LONG},
        {"name": "drop", "scaling": "drop", "encoder": LONG, "length": SHORT},
    ],
}

# What a file may say beside what its name implies; distances that are told apart for longer.
T5_SETTINGS = {"scale_decoder_outputs": True, "dense_act_fn": "silu", "relative_attention_max_distance": 300}

PHI3 = {"original_max_position_embeddings": TRAINED, "max_position_embeddings": 4 * TRAINED}


def phi3_cases(theta, pairs, factor):
    """The only types that the class takes; both sides of the boundary, and greedy text that crosses it."""
    default = {"rope_type": "default", "rope_theta": theta, "partial_rotary_factor": factor}
    return [
        *plain_cases(),
        {"name": "at the boundary", "length": TRAINED},
        {"name": "one past the boundary", "length": TRAINED + 1},
        {"name": "crossing", "length": TRAINED - 8},
        {"name": "default, short", "scaling": default, "length": SHORT},
        {"name": "default, long", "scaling": default, "length": LONG},
        {"name": "drop, long", "scaling": "drop", "length": LONG},
    ]


def phi3_rope(theta, pairs, factor):
    return {"rope_parameters": {"rope_type": "longrope", "rope_theta": theta, "partial_rotary_factor": factor,
                                "original_max_position_embeddings": TRAINED,
                                "short_factor": ramp(pairs, 1.5), "long_factor": ramp(pairs, 6.0)}}


MINISTRAL3 = {"llama_4_scaling_beta": 0.3, "original_max_position_embeddings": TRAINED // 4}


def ministral3_scalings():
    table = scalings(1e6, 8)
    for name, scaling in table.items():
        scaling.update(MINISTRAL3)
    table["yarn, mscale"] = {**table["yarn"], "mscale": 1.0, "mscale_all_dim": 1.0}
    return table


FAMILIES = {
    "llama": {
        "type": "llama", "dtype": torch.float32,
        "config": decoder(head_dim=16, **default_rope()),
        "cases": rope_cases(SCALED, growing=True, leave_out=("default",)),
    },
    # Biases everywhere, a head of 24, one key/value head, tied, scaled as Llama 3.
    "llama-bias": {
        "type": "llama", "dtype": torch.bfloat16,
        "config": decoder(head_dim=24, num_key_value_heads=1, attention_bias=True, mlp_bias=True,
                          tie_word_embeddings=True,
                          rope_parameters=scalings(5e5, 12)["llama3"]),
        "cases": rope_cases(scalings(5e5, 12), leave_out=("llama3",)),
    },
    "mistral": {
        "type": "mistral", "dtype": torch.float16,
        "config": decoder(head_dim=16, sliding_window=WINDOW, **default_rope()),
        "cases": rope_cases(SCALED, leave_out=("default",)),
    },
    "qwen2": {
        "type": "qwen2", "dtype": torch.bfloat16,
        "config": decoder(num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True, **default_rope(1e6)),
        "cases": rope_cases(scalings(1e6, 8), leave_out=("default",)),
    },
    # The window of use_sliding_window acts on layers from max_window_layers on.
    "qwen2-window": {
        "type": "qwen2", "dtype": torch.float16,
        "config": decoder(num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1, use_sliding_window=True,
                          sliding_window=WINDOW, max_window_layers=1, **default_rope(1e6)),
        "cases": rope_cases({"yarn": scalings(1e6, 8)["yarn"]}),
    },
    "qwen3": {
        "type": "qwen3", "dtype": torch.float16,
        "config": decoder(head_dim=16, tie_word_embeddings=True, **default_rope(1e6)),
        "cases": rope_cases(scalings(1e6, 8), growing=True, leave_out=("default",)),
    },
    # Caps low enough to bend; query_pre_attn_scalar is not the head's width.
    "gemma2": {
        "type": "gemma2", "dtype": torch.bfloat16, "norm_adds_one": True, "eager": True,
        "config": decoder(num_attention_heads=2, num_key_value_heads=1, head_dim=16, sliding_window=WINDOW,
                          query_pre_attn_scalar=24, attn_logit_softcapping=5.0, final_logit_softcapping=8.0,
                          tie_word_embeddings=True, **default_rope()),
        "cases": rope_cases(SCALED, leave_out=("default",)),
    },
    "gemma3": {
        "type": "gemma3_text", "dtype": torch.bfloat16, "norm_adds_one": True,
        "config": decoder(num_hidden_layers=6, num_attention_heads=2, num_key_value_heads=1, head_dim=16,
                          intermediate_size=48, sliding_window=WINDOW, query_pre_attn_scalar=24,
                          rope_parameters={"full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
                                           "sliding_attention": GEMMA3_LOCAL}),
        "cases": rope_cases(gemma3_scalings(), growing=True),
    },
    # "gelu" of the first files means the tanh form.
    "gemma": {
        "type": "gemma", "dtype": torch.bfloat16, "norm_adds_one": True,
        "config": decoder(num_attention_heads=2, num_key_value_heads=1, head_dim=16, hidden_act="gelu",
                          **default_rope()),
        "cases": rope_cases({"yarn": SCALED["yarn"]}),
    },
    # Version 1.0: relu, tied, decoder output times d_model^-0.5.
    "t5": {
        "type": "t5", "dtype": torch.float32, **T5, "std": {**T5["std"], "shared": 1.6},
        "config": t5(num_layers=3, num_decoder_layers=2, feed_forward_proj="relu"),
    },
    # Version 1.1 and Flan: gated gelu, an own head, no factor.
    "t5-gated": {
        "type": "t5", "dtype": torch.bfloat16, "own_head": True, **T5,
        "config": t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False),
        "cases": [*T5["cases"],
                  {"name": "other settings", "encoder": LONG, "length": SHORT, "config": T5_SETTINGS}],
    },
    "mt5": {
        "type": "mt5", "dtype": torch.float16, "own_head": True, **T5,
        "config": t5(feed_forward_proj="gated-gelu", relative_attention_num_buckets=8,
                     relative_attention_max_distance=20, tie_word_embeddings=False),
    },
    # A bias of its own in every layer.
    "umt5": {
        "type": "umt5", "dtype": torch.bfloat16, "own_head": True, **T5,
        "config": t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    },
    # The last greedy step of the second case reads all 64 rows of the table; more is refused.
    "gpt2": {
        "type": "gpt2", "dtype": torch.float32, "without_positions": without_parameter("wpe"),
        "config": {"vocab_size": 96, "n_embd": 32, "n_head": 2, "n_layer": 2, "n_positions": TRAINED, **TOKENS},
        "cases": [{"name": "short", "length": SHORT}, {"name": "to the last row", "length": TRAINED + 1 - GREEDY},
                  {"name": "scaled by layer", "length": SHORT, "config": {"scale_attn_by_inverse_layer_idx": True}},
                  {"name": "not scaled, exact gelu", "length": SHORT,
                   "config": {"scale_attn_weights": False, "activation_function": "gelu"}}],
    },
    "gpt_neox": {
        "type": "gpt_neox", "dtype": torch.float16,
        "config": {"vocab_size": 96, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
                   "num_attention_heads": 2, "max_position_embeddings": TRAINED, **TOKENS,
                   **default_rope(partial_rotary_factor=0.25)},
        "cases": rope_cases(scalings(1e4, 4, partial_rotary_factor=0.25), leave_out=("default",)),
    },
    "gpt_neox-serial": {
        "type": "gpt_neox", "dtype": torch.float32,
        "config": {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
                   "num_attention_heads": 2, "max_position_embeddings": TRAINED, "use_parallel_residual": False,
                   **TOKENS, **default_rope(partial_rotary_factor=0.5)},
        "cases": [*rope_cases({}),
                  {"name": "gelu by tanh", "length": SHORT, "config": {"hidden_act": "gelu_fast"}}],
    },
    "phi": {
        "type": "phi", "dtype": torch.float32,
        "config": decoder(num_attention_heads=2, num_key_value_heads=2, **default_rope(partial_rotary_factor=0.5)),
        "cases": [*rope_cases({"yarn": scalings(1e4, 4, partial_rotary_factor=0.5)["yarn"]})],
    },
    "starcoder2": {
        "type": "starcoder2", "dtype": torch.bfloat16,
        "config": decoder(num_attention_heads=2, num_key_value_heads=1, sliding_window=WINDOW, **default_rope(1e5)),
        "cases": rope_cases({"linear": scalings(1e5, 8)["linear"]}),
    },
    "stablelm": {
        "type": "stablelm", "dtype": torch.float16,
        "config": decoder(num_attention_heads=2, num_key_value_heads=1, use_qkv_bias=True,
                          **default_rope(partial_rotary_factor=0.25)),
        "cases": rope_cases({"linear": scalings(1e4, 2, partial_rotary_factor=0.25)["linear"]}),
    },
    "stablelm-parallel": {
        "type": "stablelm", "dtype": torch.float16,
        "config": decoder(num_attention_heads=2, num_key_value_heads=2, use_parallel_residual=True,
                          **default_rope(partial_rotary_factor=0.25)),
        "cases": plain_cases(),
    },
    # One key/value head and one norm (7B); grouped heads and two norms (40B); ALiBi, biases, in turn (RW). Slopes of two
    # heads and distances below 256 keep the bfloat16 of its ALiBi exact.
    "falcon": {
        "type": "falcon", "dtype": torch.bfloat16,
        "config": falcon(multi_query=True, parallel_attn=True, **default_rope()),
        "cases": rope_cases({"dynamic": scalings(1e4, 8)["dynamic"]}),
    },
    "falcon-grouped": {
        "type": "falcon", "dtype": torch.bfloat16,
        "config": falcon(num_attention_heads=4, num_kv_heads=2, new_decoder_architecture=True, **default_rope()),
        "cases": plain_cases(),
    },
    "falcon-alibi": {
        "type": "falcon", "dtype": torch.float32, "without_positions": falcon_bias(keep=False),
        "change_eager": falcon_bias(keep=True),
        "config": falcon(multi_query=False, parallel_attn=False, alibi=True, bias=True),
        "cases": plain_cases(),
    },
    "phi3": {
        "type": "phi3", "dtype": torch.float16,
        "config": decoder(num_attention_heads=2, num_key_value_heads=1, **{**PHI3, **phi3_rope(1e4, 8, 1.0)}),
        "cases": phi3_cases(1e4, 8, 1.0),
    },
    "phi3-partial": {
        "type": "phi3", "dtype": torch.bfloat16, "std": {"qkv_proj": 0.15},
        "config": decoder(hidden_size=64, num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True,
                          **{**PHI3, **phi3_rope(1e4, 12, 0.75)}),
        "cases": phi3_cases(1e4, 12, 0.75),
    },
    "phi3-window": {
        "type": "phi3", "dtype": torch.float32,
        "config": decoder(num_attention_heads=2, num_key_value_heads=1, sliding_window=WINDOW,
                          **{**PHI3, **phi3_rope(1e4, 8, 1.0)}),
        "cases": [
            *plain_cases(),
            {"name": "one past the boundary", "length": TRAINED + 1},
            {"name": "crossing", "length": TRAINED - 8},
            {"name": "growing", "length": LONG, "reading": "growing"},
        ],
    },
    "smollm3": {
        "type": "smollm3", "dtype": torch.bfloat16, "std": {"q_proj": 0.2},
        "config": decoder(num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=1, **default_rope(2e6)),
        "cases": rope_cases(scalings(2e6, 8), leave_out=("default",)),
    },
    "olmo2": {
        "type": "olmo2", "dtype": torch.float32,
        "config": decoder(num_attention_heads=2, num_key_value_heads=1, **default_rope(5e5)),
        "cases": rope_cases(scalings(5e5, 8), leave_out=("default",)),
    },
    # OLMo 3 is read with a scaling on its full layers alone.
    "olmo3": {
        "type": "olmo3", "dtype": torch.float16,
        "config": decoder(num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=1, sliding_window=WINDOW,
                          rope_parameters={"full_attention": scalings(5e5, 8)["yarn"],
                                           "sliding_attention": {"rope_type": "default", "rope_theta": 5e5}}),
        "cases": rope_cases({"linear": {"full_attention": scalings(5e5, 8)["linear"],
                                        "sliding_attention": {"rope_type": "default", "rope_theta": 5e5}}}),
    },
    "cohere": {
        "type": "cohere", "dtype": torch.float16, "std": {"embed_tokens": 0.5},
        "config": decoder(num_attention_heads=2, num_key_value_heads=1, logit_scale=0.75, **default_rope(8e4)),
        "cases": rope_cases({"yarn": scalings(8e4, 8)["yarn"]}),
    },
    # Command R+: a norm's weight for each head; biases besides.
    "cohere-plus": {
        "type": "cohere", "dtype": torch.bfloat16, "std": {"embed_tokens": 0.5},
        "config": decoder(use_qk_norm=True, attention_bias=True, logit_scale=0.5, **default_rope(8e4)),
        "cases": rope_cases({}),
    },
    "cohere2": {
        "type": "cohere2", "dtype": torch.float16, "std": {"embed_tokens": 0.5},
        "config": decoder(num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=1, sliding_window=WINDOW,
                          logit_scale=0.75, **default_rope(5e4)),
        "cases": rope_cases(scalings(5e4, 8), leave_out=("default",)),
    },
    "ministral": {
        "type": "ministral", "dtype": torch.float16,
        "config": decoder(head_dim=16, sliding_window=WINDOW, **default_rope(1e6),
                          layer_types=["sliding_attention", "full_attention"]),
        "cases": rope_cases({"yarn": scalings(1e6, 8)["yarn"]}),
    },
    "ministral3": {
        "type": "ministral3", "dtype": torch.bfloat16,
        "config": decoder(head_dim=16, rope_parameters=ministral3_scalings()["yarn, mscale"]),
        "cases": rope_cases(ministral3_scalings(), drop=False, leave_out=("yarn, mscale",)),
    },
    "bloom": {
        "type": "bloom", "dtype": torch.float16, "without_positions": without_alibi,
        "config": {"vocab_size": 96, "hidden_size": 32, "n_layer": 2, "n_head": 2, **TOKENS},
        "cases": [*plain_cases(),
                  {"name": "residual from norm", "length": SHORT,
                   "config": {"apply_residual_connection_post_layernorm": True}}],
    },
    # Three heads: slopes of a count that is no power of two. transformers refuses more than max_seq_len.
    "mpt": {
        "type": "mpt", "dtype": torch.float16, "without_positions": without_alibi,
        "config": {"vocab_size": 96, "d_model": 48, "n_heads": 3, "n_layers": 2,
                   "max_seq_len": TRAINED, **TOKENS},
        "cases": [{"name": "short", "length": SHORT},
                  {"name": "long", "length": LONG, "config": {"max_seq_len": 4 * TRAINED}},
                  {"name": "clamped, own scale", "length": SHORT,
                   "config": {"attn_config": {"clip_qkv": 1.5, "softmax_scale": 0.2}}}],
    },
}


if __name__ == "__main__":
    for name in sys.argv[1:] or FAMILIES:
        make(name)

"""Writes test/fixtures/checkpoints/gguf/<family>/: the checkpoints of tiny_checkpoints.py as GGUF files, and their losses.

    python reference/tiny_gguf.py [--site DIR] [FAMILY...]      (after tiny_checkpoints.py; versions are recorded inside)

Keys, names and layouts are those that llama.cpp's converter writes, by the gguf package's writer: rows of q and k
interleaved for llama, smollm3 and mistral3; fused q, k, v of bloom and gptneox one after the other; gpt2's matrices
transposed; 1 added to the weights of gemma's norms; llama3 scaling as the divisors `rope_freqs.weight`, longrope as
`rope_factors_{long,short}.weight`. One file has the checkpoint's own storage (f32, f16, bf16; vectors always F32), the
others are quantised by the gguf package (rows that are no multiple of 32 stay f16, as llama.cpp leaves them). No
tokenizer: the model is "none".

golden.json: transformers on the weights read back from each file, so a quantised file is held to its own values. GGUF
has no key for gemma's query_pre_attn_scalar (llama.cpp takes the head's width) nor for T5's greatest distance (128): the
`config` of the file's entry says what transformers was given instead. T5 without an own head is scaled by d_model^-0.5
here, as transformers does and llama.cpp does not.

With --site (a folder that has llama-cpp-python) every file is run by llama.cpp too, and once more with all weights as
F32, where it works in float32 except for its tables of gelu and silu; the distance is kept as `llamaCpp`.
"""

import argparse
import json
import math
import pathlib
import sys
import tempfile

import gguf
import numpy as np
import torch
from safetensors.torch import load_file, save_file

from tiny_checkpoints import FAMILIES, ROOT, VERSIONS, plain_cases, run_case

Q = gguf.GGMLQuantizationType
OUT = ROOT / "gguf"

# ---------------------------------------------------------------- layouts: (to GGUF, back)


def interleaved(heads):
    """Channels i and i + d/2 of every head become neighbours; a bias like a matrix."""
    def forward(w):
        return w.reshape(heads, 2, -1, *w.shape[1:]).transpose(1, 2).reshape(w.shape)

    def backward(w):
        return w.reshape(heads, -1, 2, *w.shape[1:]).transpose(1, 2).reshape(w.shape)

    return forward, backward


def sections(heads):
    """Head by head (q, k, v) becomes all q, all k, all v."""
    def forward(w):
        return w.reshape(heads, 3, -1, *w.shape[1:]).transpose(0, 1).reshape(w.shape)

    def backward(w):
        return w.reshape(3, heads, -1, *w.shape[1:]).transpose(0, 1).reshape(w.shape)

    return forward, backward


def grouped_sections(heads, kv_heads):
    """Falcon's groups (the queries of a key head, its key, its value) become all q, all k, all v."""
    each = heads // kv_heads

    def forward(w):
        grouped = w.reshape(kv_heads, each + 2, -1, *w.shape[1:])
        parts = grouped[:, :each], grouped[:, each], grouped[:, each + 1]
        return torch.cat([p.reshape(-1, *w.shape[1:]) for p in parts])

    def backward(w):
        width = w.shape[0] // (heads + 2 * kv_heads)
        q, k, v = w.split([heads * width, kv_heads * width, kv_heads * width])
        parts = [p.reshape(kv_heads, -1, width, *w.shape[1:]) for p in (q, k, v)]
        return torch.cat(parts, 1).reshape(w.shape)

    return forward, backward


def layout(family, arch, name, c):
    if arch == "falcon" and "query_key_value" in name:
        return grouped_sections(c["num_attention_heads"], falcon_kv_heads(c))
    if arch in ("llama", "smollm3", "mistral3"):
        if ".q_proj." in name:
            return interleaved(c["num_attention_heads"])
        if ".k_proj." in name:
            return interleaved(c["num_key_value_heads"])
    if arch in ("bloom", "gptneox") and "query_key_value" in name:
        return sections(c.get("n_head") or c["num_attention_heads"])
    if arch == "gpt2" and name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
        return (lambda w: w.T), (lambda w: w.T)
    if arch in ("gemma", "gemma2", "gemma3") and name.endswith("norm.weight"):
        return (lambda w: w + 1), (lambda w: w - 1)
    return (lambda w: w), (lambda w: w)


# ---------------------------------------------------------------- metadata


def common(w, c, rms=True):
    """What the converter writes for most decoders."""
    w.add_block_count(c["num_hidden_layers"])
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(c["hidden_size"])
    w.add_feed_forward_length(c["intermediate_size"])
    w.add_head_count(c["num_attention_heads"])
    w.add_head_count_kv(c["num_key_value_heads"])
    rope = c["rope_parameters"].get("full_attention", c["rope_parameters"])
    if rope["rope_type"] == "linear":
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(rope["factor"])
    elif rope["rope_type"] == "yarn":
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(rope["factor"])
        w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    w.add_rope_freq_base(rope["rope_theta"])
    local = c["rope_parameters"].get("sliding_attention")
    if local:
        w.add_rope_freq_base_swa(local["rope_theta"])
    if rms:
        w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    else:
        w.add_layer_norm_eps(c["layer_norm_eps"])
    if c.get("head_dim"):
        w.add_key_length(c["head_dim"])
        w.add_value_length(c["head_dim"])


def head_width(c):
    return c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]


def llama_keys(w, c):
    common(w, c)
    w.add_rope_dimension_count(head_width(c))


def gemma_keys(w, c):
    common(w, c)
    for key, add in (("attn_logit_softcapping", w.add_attn_logit_softcapping),
                     ("final_logit_softcapping", w.add_final_logit_softcapping)):
        if c.get(key) is not None:
            add(c[key])
    if c.get("sliding_window"):
        w.add_sliding_window(c["sliding_window"])


def cohere_keys(w, c):
    common(w, c, rms=False)
    w.add_logit_scale(c["logit_scale"])
    if c.get("sliding_window"):
        w.add_sliding_window(c["sliding_window"])
    w.add_rope_dimension_count(head_width(c))
    w.add_rope_scaling_type(gguf.RopeScalingType.NONE)


def olmo3_keys(w, c):
    common(w, c)
    w.add_sliding_window(c["sliding_window"])
    w.add_sliding_window_pattern([kind == "sliding_attention" for kind in c["layer_types"]])


def phi3_keys(w, c):
    rope = c["rope_parameters"]
    original = rope["original_max_position_embeddings"]
    w.add_context_length(c["max_position_embeddings"])
    w.add_rope_scaling_orig_ctx_len(original)
    w.add_embedding_length(c["hidden_size"])
    w.add_feed_forward_length(c["intermediate_size"])
    w.add_block_count(c["num_hidden_layers"])
    w.add_head_count(c["num_attention_heads"])
    w.add_head_count_kv(c["num_key_value_heads"])
    w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    w.add_rope_dimension_count(int(rope["partial_rotary_factor"] * c["hidden_size"]) // c["num_attention_heads"])
    w.add_rope_freq_base(rope["rope_theta"])
    w.add_sliding_window(c["sliding_window"] or 0)
    factor = c["max_position_embeddings"] / original
    w.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(factor) / math.log(original)))


def mistral3_keys(w, c):
    llama_keys(w, c)
    w.add_rope_scaling_yarn_log_mul(c["rope_parameters"]["mscale_all_dim"])
    w.add_attn_temperature_scale(c["rope_parameters"]["llama_4_scaling_beta"])


def gpt2_keys(w, c):
    w.add_block_count(c["n_layer"])
    w.add_context_length(c["n_positions"])
    w.add_embedding_length(c["n_embd"])
    w.add_feed_forward_length(4 * c["n_embd"])
    w.add_head_count(c["n_head"])
    w.add_layer_norm_eps(c["layer_norm_epsilon"])


def gptneox_keys(w, c):
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(c["hidden_size"])
    w.add_block_count(c["num_hidden_layers"])
    w.add_feed_forward_length(c["intermediate_size"])
    w.add_rope_dimension_count(int(c["rope_parameters"]["partial_rotary_factor"] * head_width(c)))
    w.add_head_count(c["num_attention_heads"])
    w.add_parallel_residual(c["use_parallel_residual"])
    w.add_layer_norm_eps(c["layer_norm_eps"])


def partial_keys(w, c):
    """phi2, stablelm: what both converters write; the base of the angles is left out."""
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(c["hidden_size"])
    w.add_block_count(c["num_hidden_layers"])
    w.add_feed_forward_length(c["intermediate_size"])
    w.add_head_count(c["num_attention_heads"])
    w.add_head_count_kv(c["num_key_value_heads"])
    w.add_rope_dimension_count(int(c["rope_parameters"]["partial_rotary_factor"] * head_width(c)))
    if "use_parallel_residual" in c:
        w.add_parallel_residual(c["use_parallel_residual"])
    w.add_layer_norm_eps(c["layer_norm_eps"])


def starcoder2_keys(w, c):
    common(w, {**c, "layer_norm_eps": c["norm_epsilon"]}, rms=False)


def falcon_kv_heads(c):
    if c["new_decoder_architecture"]:
        return c["num_kv_heads"]
    return 1 if c["multi_query"] else c["num_attention_heads"]


def falcon_keys(w, c):
    w.add_context_length(c["max_position_embeddings"])
    w.add_tensor_data_layout("jploski")
    w.add_embedding_length(c["hidden_size"])
    w.add_feed_forward_length(4 * c["hidden_size"])
    w.add_block_count(c["num_hidden_layers"])
    w.add_head_count(c["num_attention_heads"])
    w.add_head_count_kv(falcon_kv_heads(c))
    w.add_layer_norm_eps(c["layer_norm_epsilon"])


def bloom_keys(w, c):
    w.add_context_length(64)
    w.add_embedding_length(c["hidden_size"])
    w.add_feed_forward_length(4 * c["hidden_size"])
    w.add_block_count(c["n_layer"])
    w.add_head_count(c["n_head"])
    w.add_head_count_kv(c["n_head"])
    w.add_layer_norm_eps(c["layer_norm_epsilon"])


def mpt_keys(w, c):
    w.add_context_length(c["max_seq_len"])
    w.add_embedding_length(c["d_model"])
    w.add_block_count(c["n_layers"])
    w.add_feed_forward_length(4 * c["d_model"])
    w.add_head_count(c["n_heads"])
    w.add_layer_norm_eps(1e-5)
    w.add_max_alibi_bias(c["attn_config"]["alibi_bias_max"])


def t5_keys(w, c):
    w.add_context_length(512)
    w.add_embedding_length(c["d_model"])
    w.add_feed_forward_length(c["d_ff"])
    w.add_block_count(c["num_layers"])
    w.add_decoder_block_count(c["num_decoder_layers"])
    w.add_head_count(c["num_heads"])
    w.add_key_length(c["d_kv"])
    w.add_value_length(c["d_kv"])
    w.add_layer_norm_eps(c["layer_norm_epsilon"])
    w.add_relative_attn_buckets_count(c["relative_attention_num_buckets"])
    w.add_layer_norm_rms_eps(c["layer_norm_epsilon"])
    w.add_decoder_start_token_id(c["decoder_start_token_id"])


def rope_tensors(c):
    rope = c.get("rope_parameters") or {}
    if rope.get("rope_type") == "llama3":
        width, original = head_width(c), rope["original_max_position_embeddings"]
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        divisors = []
        for frequency in rope["rope_theta"] ** -(torch.arange(0, width, 2, dtype=torch.float32) / width):
            turns = original * float(frequency) / (2 * math.pi)
            kept = min(max((turns - low) / (high - low), 0.0), 1.0)
            divisors.append(1 / ((1 - kept) / rope["factor"] + kept))
        return {"rope_freqs.weight": divisors}
    if rope.get("rope_type") == "longrope":
        return {"rope_factors_long.weight": rope["long_factor"], "rope_factors_short.weight": rope["short_factor"]}
    return {}


# family: architecture, keys, quantised kinds beside the own storage, and what transformers is given for lack of a key.
FILES = {
    "llama": ("llama", llama_keys, ("q8_0", "q4_0", "q4_1", "q5_0", "q5_1"), {}),
    "llama-bias": ("llama", llama_keys, ("q8_0",), {}),
    "qwen2": ("qwen2", common, ("q4_0",), {}),
    "qwen3": ("qwen3", common, ("q8_0",), {}),
    "gemma": ("gemma", gemma_keys, (), {}),
    "gemma2": ("gemma2", gemma_keys, ("q4_0",), {"query_pre_attn_scalar": 16}),
    "gemma3": ("gemma3", gemma_keys, ("q8_0",), {"query_pre_attn_scalar": 16}),
    "t5": ("t5", t5_keys, ("q8_0",), {}),
    "t5-gated": ("t5", t5_keys, ("q4_0",), {}),
    "umt5": ("t5", t5_keys, (), {}),
    "gpt2": ("gpt2", gpt2_keys, ("q8_0",), {}),
    "gpt_neox": ("gptneox", gptneox_keys, ("q4_0",), {}),
    "gpt_neox-serial": ("gptneox", gptneox_keys, ("q8_0",), {}),
    "phi3": ("phi3", phi3_keys, ("q8_0",), {}),
    "phi3-partial": ("phi3", phi3_keys, ("q4_0",), {}),
    "smollm3": ("smollm3", llama_keys, ("q4_0",), {}),
    "olmo2": ("olmo2", common, ("q8_0",), {}),
    "olmo3": ("olmo2", olmo3_keys, (), {}),
    "cohere": ("command-r", cohere_keys, (), {}),
    "cohere2": ("cohere2", cohere_keys, ("q4_0",), {}),
    "ministral3": ("mistral3", mistral3_keys, ("q8_0",), {}),
    "phi": ("phi2", partial_keys, (), {}),
    "starcoder2": ("starcoder2", starcoder2_keys, (), {"sliding_window": None}),
    "stablelm": ("stablelm", partial_keys, (), {}),
    "stablelm-parallel": ("stablelm", partial_keys, (), {}),
    "falcon": ("falcon", falcon_keys, (), {}),
    "falcon-grouped": ("falcon", falcon_keys, (), {}),
    "bloom": ("bloom", bloom_keys, ("q4_0",), {}),
    "mpt": ("mpt", mpt_keys, (), {}),
}

FTYPES = {"f32": "ALL_F32", **{k: f"MOSTLY_{k.upper()}" for k in ("f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1")}}
STORAGE = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}


def gguf_name(arch, layers, name):
    names = gguf.get_tensor_name_map(next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == arch), layers)
    for candidate in (name, name.removeprefix("transformer.")):
        found = names.get_name(candidate, try_suffixes=(".weight", ".bias"))
        if found:
            return found
    raise KeyError(name)


def write(path, family, kind):
    """Writes one file; gives back the weights as a reader dequantises them, in transformers' layout."""
    arch, keys, _, _ = FILES[family]
    folder = ROOT / family
    c = json.loads((folder / "config.json").read_text())
    layers = next(c[k] for k in ("num_hidden_layers", "n_layer", "n_layers", "num_layers") if k in c)
    layers = max(layers, c.get("num_decoder_layers") or 0)
    w = gguf.GGUFWriter(path, arch)
    w.add_name(f"tiny {family}")
    keys(w, c)
    w.add_vocab_size(c["vocab_size"])
    w.add_file_type(gguf.LlamaFileType[FTYPES[kind]])
    w.add_quantization_version(gguf.GGML_QUANT_VERSION)
    w.add_tokenizer_model("none")
    for name, values in rope_tensors(c).items():
        w.add_tensor(name, np.asarray(values, np.float32))
    back = {}
    for name, value in load_file(folder / "model.safetensors").items():
        forward, backward = layout(family, arch, name, c)
        data = np.ascontiguousarray(forward(value.float()).numpy())
        target = gguf_name(arch, layers, name)
        quantised = Q[kind.upper()]
        if data.ndim < 2 or target.endswith("_norm.weight") or target.startswith("position_embd") or "attn_rel_b" in target:
            quantised = Q.F32
        elif kind.startswith("q") and data.shape[-1] % 32:
            quantised = Q.F16
        stored = gguf.quants.quantize(data, quantised)
        w.add_tensor(target, stored, raw_dtype=quantised)
        read = gguf.quants.dequantize(stored, quantised).reshape(data.shape)
        back[name] = backward(torch.from_numpy(read.astype(np.float32))).contiguous()
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return back


# ---------------------------------------------------------------- llama.cpp


class LlamaCpp:
    def __init__(self, site):
        sys.path.append(site)
        import importlib.metadata

        import llama_cpp.llama_cpp as low

        self.low = low
        self.silent = low.llama_log_callback(lambda level, text, user: None)
        low.llama_log_set(self.silent, None)
        low.llama_backend_init()
        self.version = importlib.metadata.version("llama-cpp-python")

    def batch(self, tokens):
        b = self.low.llama_batch_init(len(tokens), 0, 1)
        b.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            b.token[i], b.pos[i], b.n_seq_id[i], b.logits[i] = token, i, 1, 1
            b.seq_id[i][0] = 0
        return b

    def losses(self, path, case, factor):
        low = self.low
        parameters = low.llama_model_default_params()
        parameters.use_mmap = False
        parameters.n_gpu_layers = 0
        model = low.llama_model_load_from_file(str(path).encode(), parameters)
        if not model:
            raise RuntimeError(f"llama.cpp does not load {path}")
        settings = low.llama_context_default_params()
        settings.n_ctx = settings.n_batch = settings.n_ubatch = 256
        settings.n_threads = settings.n_threads_batch = 1
        settings.flash_attn_type = 0
        settings.type_k = settings.type_v = 0  # float32 keys and values
        context = low.llama_init_from_model(model, settings)
        tokens = case["tokens"]
        if "decoderTokens" in case:
            batch = self.batch(tokens)
            assert low.llama_encode(context, batch) == 0
            low.llama_batch_free(batch)
            tokens = case["decoderTokens"]
        batch = self.batch(tokens)
        assert low.llama_decode(context, batch) == 0
        vocabulary = low.llama_vocab_n_tokens(low.llama_model_get_vocab(model))
        rows = [np.ctypeslib.as_array(low.llama_get_logits_ith(context, i), (vocabulary,)).astype(np.float64) * factor
                for i in range(len(tokens))]
        low.llama_batch_free(batch)
        low.llama_free(context)
        low.llama_model_free(model)
        return np.array([np.log(np.exp(r - r.max()).sum()) + r.max() - r[t] for r, t in zip(rows, tokens[1:])])


# ---------------------------------------------------------------- golden values


def make(family, engine):
    arch, _, kinds, given = FILES[family]
    spec = FAMILIES[family]
    folder = OUT / family
    folder.mkdir(parents=True, exist_ok=True)
    source = json.loads((ROOT / family / "config.json").read_text())
    factor = source["d_model"] ** -0.5 if family == "t5" else 1.0
    # llama.cpp can neither drop T5's bias nor be told what `config` changes.
    cases = [c for c in spec["cases"] if not (spec.get("seq2seq") and (c.get("scaling") or "config" in c))]
    recipes = {c["name"]: c for c in cases} if spec.get("seq2seq") or family in ("gpt2", "mpt") else None
    recipes = list(recipes.values()) if recipes else plain_cases()
    own = STORAGE[spec["dtype"]]
    files = []
    for kind in (own, *kinds):
        path = folder / f"{kind}.gguf"
        weights = write(path, family, kind)
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            (scratch / "config.json").write_text(json.dumps({**source, **given}))
            save_file(weights, scratch / "model.safetensors", metadata={"format": "pt"})
            saved = {**source, **given}
            cases = [run_case(family, spec, scratch, saved, case)[1] for case in recipes]
            entry = {"file": path.name, "config": given, "cases": cases}
            if engine:
                distances = {}
                if kind == own:
                    write(scratch / "model.gguf", family, "f32")
                    distances["asF32"] = distance(engine, scratch / "model.gguf", cases, factor)
                distances["asStored"] = distance(engine, path, cases, factor)
                entry["llamaCpp"] = distances
                print(f"{family} {kind}: llama.cpp {distances}", flush=True)
        files.append(entry)
    versions = {**VERSIONS, "gguf": "0.19.0", **({"llama-cpp-python": engine.version} if engine else {})}
    golden = {"generator": "reference/tiny_gguf.py", "versions": versions, "family": family, "architecture": arch,
              "files": files}
    lines = json.dumps(golden, separators=(",", ":")).replace('{"name"', '\n{"name"').replace('{"file"', '\n{"file"')
    (folder / "golden.json").write_text(lines + "\n")
    print(f"{family}: " + ", ".join(f"{p.name} {p.stat().st_size:,}" for p in sorted(folder.iterdir())), flush=True)


def distance(engine, path, cases, factor):
    """By case, llama.cpp's mean and largest distance from transformers' float64 losses."""
    out = {}
    for case in cases:
        # It picks longrope's list by the size of its context (256 here), not by the text's.
        if any("rope_factors_long" in t.name for t in gguf.GGUFReader(path).tensors) and len(case["tokens"]) <= 64:
            continue
        off = np.abs(engine.losses(path, case, factor) - np.array(case["losses64"]))
        out[case["name"]] = [float(f"{off.mean():.2e}"), float(f"{off.max():.2e}")]
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*")
    parser.add_argument("--site")
    arguments = parser.parse_args()
    engine = LlamaCpp(arguments.site) if arguments.site else None
    for name in arguments.families or FILES:
        make(name, engine)

"""Writes test/fixtures/hf-configs.json: what transformers computes from config.json files of many families and spellings.

Run by hand: python reference/hf_configs.py (transformers 5.24.0, torch CPU; the versions are recorded inside).

Three lists. "tables": the rotary module of the real class, built from the file; inverse frequencies per layer type and
the factor on cos and sin, after a forward call of a given length; "saved" is the file as transformers writes it again.
"models": a tiny real model is run; which layers
rotate, how channels pair (from the scores of unit vectors, so that a permutation of the output does not matter), how
many keys the last query of each layer sees, the softmax scale. "misread": files that transformers reads otherwise than they mean: what it
computes, or the exception that it raises. Besides, "embeddings": the rows of learned and fixed position tables and the
row that the first token gets; "t5": which layers own a bias.
"""

import copy
import glob
import importlib
import json
import math
import os
import pathlib

os.environ["TRANSFORMERS_VERBOSITY"] = "critical"

import torch
import transformers
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

ROOT = pathlib.Path(__file__).parent.parent
torch.manual_seed(0)


def text_config(config):
    """The configuration object of the text model, as from_pretrained would build it."""
    config = copy.deepcopy(config)
    model_type = {"kimi_k2": "deepseek_v3"}.get(config["model_type"], config["model_type"])
    config["model_type"] = model_type
    built = CONFIG_MAPPING[model_type].from_dict(config)
    return built.get_text_config(decoder=True)


def module_of(cfg):
    package = type(cfg).__module__.rsplit(".", 1)[0]
    name = package.rsplit(".", 1)[1]
    # Some classes are configurations only, over Llama's model.
    borrowed = {"internlm3": "llama"}.get(name, name)
    return importlib.import_module(f"transformers.models.{borrowed}.modeling_{borrowed}")


def rotary_of(cfg):
    module = module_of(cfg)
    names = [n for n in dir(module) if n.endswith("RotaryEmbedding") and getattr(module, n).__module__ == module.__name__]
    names = [n for n in names if not any(w in n for w in ("Vision", "Audio", "Dynamic", "Linear", "Patch"))]
    text = [n for n in names if "Text" in n] or names
    return getattr(module, sorted(text, key=len)[0])(cfg)


def numbers(tensor):
    return [float(f"{v:.9g}") for v in tensor.detach().to(torch.float64).flatten().tolist()]


def call(rotary, length, layer_type):
    """Run forward as a sequence of this length; the factor is what position 0 is left with."""
    x = torch.zeros(1, 2, 8)
    ids = torch.tensor([[0, length - 1]])
    kwargs = {} if layer_type is None else {"layer_type": layer_type}
    try:
        out = rotary(x, ids, **kwargs)
    except (IndexError, RuntimeError, ValueError, TypeError):
        out = rotary(x, ids[None].expand(3, 1, 2), **kwargs)
    if torch.is_tensor(out):
        return float(out.abs().flatten()[0])
    cos = out[0]
    return float(cos.flatten()[0])


def tables_of(config, lengths):
    cfg = text_config(config)
    if cfg.model_type in ("gptj", "codegen"):
        module = module_of(cfg)
        table = module.create_sinusoidal_positions(2, cfg.rotary_dim or cfg.hidden_size)[1]
        half = table.shape[0] // 2
        frequencies = torch.atan2(table[:half].double(), table[half:].double())
        return [dict(layerType=None, length=n, inverseFrequencies=numbers(frequencies), attentionFactor=1.0) for n in lengths]
    out = []
    probe = rotary_of(cfg)
    types = [n[: -len("_inv_freq")] for n in dict(probe.named_buffers()) if n.endswith("_inv_freq") and "original" not in n]
    for layer_type in types or [None]:
        for length in lengths:
            rotary = rotary_of(cfg)
            factor = call(rotary, length, layer_type)
            buffer = getattr(rotary, "inv_freq" if layer_type is None else f"{layer_type}_inv_freq")
            frequencies = numbers(buffer)
            scaling = getattr(rotary, "attention_scaling" if layer_type is None else f"{layer_type}_attention_scaling", factor)
            # The attribute is float64, the table float32; PhiMoE keeps its own factor in forward.
            exact = float(scaling) if math.isclose(scaling, factor, rel_tol=1e-6) else factor
            if cfg.model_type == "phimoe":
                frequencies = numbers(rotary.rope_init_fn(cfg)[0])
                exact = factor
            out.append(dict(layerType=layer_type, length=length, inverseFrequencies=frequencies, attentionFactor=exact))
    return out


SHAPE = dict(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=8, max_position_embeddings=256,
             vocab_size=32, intermediate_size=64)
LATENT = dict(SHAPE, num_key_value_heads=4, kv_lora_rank=16, q_lora_rank=16, qk_nope_head_dim=16, qk_rope_head_dim=16,
              v_head_dim=16, n_routed_experts=4, n_group=1, topk_group=1, num_experts_per_tok=2, moe_intermediate_size=16)


def shaped(model_type, **keys):
    return dict(SHAPE, model_type=model_type, **keys)


YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=64)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
LONG = dict(rope_type="longrope", short_factor=[1 + i / 8 for i in range(8)], long_factor=[2 + i for i in range(8)],
            original_max_position_embeddings=64)


def table_cases():
    """Files whose meaning transformers and a plain reading agree on."""
    cases = {}
    for path in sorted(glob.glob(str(ROOT / "examples/configs/*.json"))):
        config = json.load(open(path))
        if config["model_type"] in ("bloom", "mpt", "t5", "gpt2"):
            continue
        lengths = [1024]
        if config["model_type"] in ("phi3", "internlm3"):
            lengths = [4096, 4097, 131072]
        cases[f"file:{pathlib.Path(path).stem}"] = (None, lengths, config)

    def add(name, config, lengths=(128,)):
        cases[name] = (config, list(lengths), config)

    # Spellings of one thing
    add("llama v4 linear, type", shaped("llama", rope_theta=20000.0, rope_scaling=dict(type="linear", factor=4)))
    add("llama v4 linear, rope_type", shaped("llama", rope_theta=20000.0, rope_scaling=dict(rope_type="linear", factor=4.0)))
    add("llama v5 linear", shaped("llama", rope_parameters=dict(rope_type="linear", factor=4.0, rope_theta=20000.0)))
    add("llama v5 linear, type", shaped("llama", rope_parameters=dict(type="linear", factor=4.0, rope_theta=20000.0)))
    add("llama v5 theta outside", shaped("llama", rope_theta=7000.0, rope_parameters=dict(rope_type="linear", factor=4.0)))
    add("llama no keys", shaped("llama"))
    add("llama null scaling", shaped("llama", rope_theta=5e5, rope_scaling=None))
    add("llama empty scaling", shaped("llama", rope_theta=5e5, rope_scaling={}))
    add("llama head_dim", shaped("llama", head_dim=32, rope_theta=1e6))
    add("llama head_dim null", shaped("llama", head_dim=None, rope_theta=1e6, rope_scaling=YARN))
    add("llama dynamic", shaped("llama", rope_scaling=dict(type="dynamic", factor=2.0)), (100, 256, 257, 1000))
    add("llama yarn", shaped("llama", rope_scaling=YARN))
    add("llama yarn factor null", shaped("llama", rope_scaling=dict(YARN, factor=None)))
    add("llama yarn top-level original", shaped("llama", original_max_position_embeddings=64,
                                                rope_scaling=dict(rope_type="yarn", factor=4.0)))
    add("llama yarn no original", shaped("llama", rope_scaling=dict(rope_type="yarn", factor=4.0)))
    add("llama yarn every key", shaped("llama", rope_scaling=dict(YARN, beta_fast=16, beta_slow=2.0, truncate=False,
                                                                  mscale=0.7, mscale_all_dim=0.5)))
    add("llama yarn attention factor", shaped("llama", rope_scaling=dict(YARN, attention_factor=1.25)))
    add("llama yarn attention factor zero betas", shaped("llama", rope_scaling=dict(YARN, beta_fast=0, beta_slow=0)))
    add("llama yarn mscale alone", shaped("llama", rope_scaling=dict(YARN, mscale=0.7)))
    add("llama yarn unused keys", shaped("llama", rope_scaling=dict(YARN, high_freq_factor=4.0)))
    add("llama llama3", shaped("llama", rope_theta=5e5, rope_scaling=LLAMA3))
    add("llama llama3 equal bands", shaped("llama", rope_theta=5e5, rope_scaling=dict(LLAMA3, high_freq_factor=1.0)))
    add("llama longrope", shaped("llama", rope_scaling=LONG), (64, 65))
    add("llama longrope factor", shaped("llama", rope_scaling=dict(LONG, factor=2.0)), (64, 65))
    add("llama longrope attention factor", shaped("llama", rope_scaling=dict(LONG, attention_factor=1.5)), (64, 65))
    add("llama proportional", shaped("llama", rope_parameters=dict(rope_type="proportional", partial_rotary_factor=0.5,
                                                                   rope_theta=1e4)))
    # Families: what they assume
    for name in ("mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gemma", "gemma2", "vaultgemma", "phi",
                 "cohere", "cohere2", "olmo", "olmo2", "olmoe", "flex_olmo", "glm", "glm4", "glm4_moe", "stablelm",
                 "nemotron", "starcoder2", "granite", "granitemoe", "exaone4", "hunyuan_v1_dense", "ernie4_5", "seed_oss",
                 "apertus", "arcee", "helium", "persimmon", "dots1", "bitnet", "cwm", "nanochat", "afmoe", "solar_open",
                 "smollm3", "gpt_oss", "llama4_text", "internlm3", "ministral", "ministral3", "qwen3_next", "qwen3_5_text",
                 "qwen2_vl_text", "qwen2_5_vl_text", "qwen3_vl_text", "glm4v_text", "gpt_neox", "gpt_neox_japanese", "falcon",
                 "olmo3", "modernbert", "modernbert-decoder", "gemma3_text", "gemma3n_text", "lfm2", "mllama_text_model",
                 "minimax_m2", "phimoe", "ernie4_5_moe", "exaone_moe", "falcon_h1", "lfm2_moe", "qwen2_5_omni_text"):
        keys = {}
        if name in ("cwm", "apertus"):
            keys = dict(max_position_embeddings=16384)
        if name == "gpt_oss":
            keys = dict(max_position_embeddings=131072)
        if name == "ministral3":
            keys = dict(max_position_embeddings=262144)
        config = shaped(name, **keys)
        if name == "llama4_text":
            config["intermediate_size_mlp"] = 64
        if name in ("qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text", "qwen3_vl_text", "glm4v_text"):
            config.update(hidden_size=512, num_attention_heads=4, num_key_value_heads=4, head_dim=128)
            if name == "glm4v_text":
                config.update(hidden_size=256, head_dim=64)
        add(f"{name} defaults", config)
    add("phi3 defaults", shaped("phi3", pad_token_id=0))
    for name in ("deepseek_v2", "deepseek_v3", "deepseek_v32", "youtu", "minicpm3", "glm_moe_dsa"):
        add(f"{name} defaults", dict(LATENT, model_type=name))
        add(f"{name} yarn", dict(LATENT, model_type=name, rope_scaling=dict(
            type="yarn", factor=4.0, original_max_position_embeddings=64, beta_fast=32, beta_slow=1, mscale=0.707,
            mscale_all_dim=0.707)))
    add("mistral4 defaults", dict(LATENT, model_type="mistral4", max_position_embeddings=1048576))
    add("gptj", dict(model_type="gptj", n_embd=64, n_head=2, n_layer=2, n_positions=128, rotary_dim=16, vocab_size=32))
    add("codegen", dict(model_type="codegen", n_embd=64, n_head=4, n_layer=2, n_positions=128, rotary_dim=8, vocab_size=32))
    # Keys of families
    add("gpt_neox keys", shaped("gpt_neox", rotary_pct=0.5, rotary_emb_base=25000))
    add("gpt_neox scaled", shaped("gpt_neox", rotary_pct=0.5, rope_scaling=dict(type="linear", factor=2.0)))
    add("phi partial", shaped("phi", partial_rotary_factor=0.75, rope_theta=5e4))
    add("phi partial inside", shaped("phi", rope_parameters=dict(rope_type="default", partial_rotary_factor=0.25, rope_theta=5e4)))
    add("phi partial yarn", shaped("phi", partial_rotary_factor=0.5, rope_scaling=YARN))
    add("phi3 partial longrope", shaped("phi3", pad_token_id=0, partial_rotary_factor=0.75, original_max_position_embeddings=64,
                                       rope_scaling=dict(type="longrope", short_factor=[1.0] * 6, long_factor=[4.0] * 6)), (64, 65))
    add("phi3 su", shaped("phi3", pad_token_id=0, original_max_position_embeddings=64, rope_scaling=dict(
        LONG, rope_type="su")), (64, 65))
    add("phi3 yarn means longrope", shaped("phi3", pad_token_id=0, original_max_position_embeddings=64, rope_scaling=dict(
        LONG, rope_type="yarn")), (64, 65))
    add("phimoe longrope", shaped("phimoe", rope_scaling=dict(LONG, short_mscale=1.25, long_mscale=1.5)), (64,))
    add("minimax_m2 rotary_dim", shaped("minimax_m2", head_dim=32, rotary_dim=16))
    add("gemma3 v4", shaped("gemma3_text", head_dim=16, rope_theta=2e6, rope_local_base_freq=3e4,
                            rope_scaling=dict(rope_type="linear", factor=8.0)))
    add("gemma3 v5 nested", shaped("gemma3_text", head_dim=16, rope_parameters=dict(
        full_attention=dict(rope_type="linear", factor=8.0, rope_theta=2e6),
        sliding_attention=dict(rope_type="default", rope_theta=3e4))))
    add("gemma3 nested without sliding", shaped("gemma3_text", head_dim=16, rope_parameters=dict(
        full_attention=dict(rope_type="linear", factor=8.0, rope_theta=2e6))))
    add("gemma4 nested", shaped("gemma4_text", head_dim=16, global_head_dim=32, hidden_size_per_layer_input=0, rope_parameters=dict(
        full_attention=dict(rope_type="proportional", partial_rotary_factor=0.25, rope_theta=1e6),
        sliding_attention=dict(rope_type="default", rope_theta=1e4))))
    add("gemma4 defaults", shaped("gemma4_text", head_dim=16, global_head_dim=64))
    add("gemma4 null entry", shaped("gemma4_text", head_dim=16, global_head_dim=32, rope_parameters=dict(
        full_attention=None, sliding_attention=dict(rope_type="default", rope_theta=1e4))))
    add("olmo3 yarn", shaped("olmo3", rope_theta=500000, rope_scaling=YARN))
    add("olmo3 nested", shaped("olmo3", rope_parameters=dict(
        full_attention=dict(YARN, rope_theta=5e5), sliding_attention=dict(rope_type="default", rope_theta=5e5))))
    add("modernbert keys", shaped("modernbert", global_rope_theta=80000.0, local_rope_theta=5000.0))
    add("qwen2_vl mrope", dict(shaped("qwen2_vl_text", rope_theta=1e6, rope_scaling=dict(type="mrope", mrope_section=[2, 3, 3]))))
    add("qwen3_5 partial mrope", shaped("qwen3_5_text", head_dim=64, rope_parameters=dict(
        rope_type="default", rope_theta=1e7, partial_rotary_factor=0.25, mrope_section=[3, 3, 2], mrope_interleaved=True)))
    add("qwen3_5 yarn", shaped("qwen3_5_text", head_dim=64, rope_parameters=dict(
        YARN, rope_theta=1e7, partial_rotary_factor=0.25, mrope_section=[3, 3, 2], mrope_interleaved=True)))
    add("hunyuan alpha", shaped("hunyuan_v1_dense", head_dim=16, rope_theta=1e4, rope_scaling=dict(
        alpha=1000.0, beta_fast=32, beta_slow=1, factor=1.0, mscale=1.0, mscale_all_dim=1.0, type="dynamic")), (128, 1000))
    add("hunyuan dynamic", shaped("hunyuan_v1_dense", head_dim=16, rope_scaling=dict(type="dynamic", factor=2.0)), (128, 1000))
    add("ministral3 yarn", shaped("ministral3", head_dim=16, rope_parameters=dict(
        YARN, rope_theta=1e6, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1)))
    add("mistral4 yarn", dict(LATENT, model_type="mistral4", rope_parameters=dict(
        YARN, rope_theta=1e4, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1, partial_rotary_factor=0.5)))
    add("multimodal text_config", dict(model_type="llava", text_config=dict(SHAPE, model_type="llama", rope_theta=5e5,
                                                                           rope_scaling=LLAMA3)))
    return cases


RELEVANT = ("rope", "rotary", "head", "layer", "window", "position", "hidden_size", "model_type", "local_attention", "chunk",
            "floor", "attn", "qk_", "interval", "pattern", "seq", "n_")


def saved(config):
    """The same file after transformers has loaded it and written it again, in the newer schema."""
    written = json.loads(text_config(config).to_json_string(use_diff=True))
    return {k: v for k, v in written.items() if any(word in k for word in RELEVANT)}


def misread_cases():
    """Files that mean one thing and are read as another. The test knows what each means."""
    return {
        "gemma3 legacy type": shaped("gemma3_text", head_dim=16, rope_scaling=dict(type="linear", factor=8.0)),
        "gemma3 flat": shaped("gemma3_text", head_dim=16, rope_parameters=dict(rope_type="linear", factor=8.0, rope_theta=2e6)),
        "gemma3 null entry": shaped("gemma3_text", head_dim=16, rope_parameters=dict(
            full_attention=None, sliding_attention=dict(rope_type="default", rope_theta=1e4))),
        "gemma4 flat": shaped("gemma4_text", head_dim=16, rope_parameters=dict(rope_type="default", rope_theta=2e6)),
        "gemma4 legacy": shaped("gemma4_text", head_dim=16, global_head_dim=32, rope_scaling=dict(rope_type="linear", factor=8.0)),
        "olmo3 sliding theta": shaped("olmo3", rope_theta=10000.0),
        "olmo3 legacy type": shaped("olmo3", rope_theta=500000, rope_scaling=dict(type="linear", factor=8.0)),
        "phi3 inner original": shaped("phi3", pad_token_id=0, max_position_embeddings=131072,
                                      rope_scaling=dict(LONG)),
        "llama top-level original wins": shaped("llama", original_max_position_embeddings=32, rope_scaling=YARN),
        "nested truncate": shaped("olmo3", rope_parameters=dict(
            full_attention=dict(YARN, rope_theta=5e5, truncate=False),
            sliding_attention=dict(rope_type="default", rope_theta=5e5))),
        "both dicts": shaped("llama", rope_parameters=dict(rope_type="default", rope_theta=3e6),
                             rope_scaling=dict(rope_type="linear", factor=4.0)),
        "gpt_neox rope_theta": shaped("gpt_neox", rope_theta=25000.0),
        "gpt_neox partial_rotary_factor": shaped("gpt_neox", partial_rotary_factor=0.5),
        "llama partial": shaped("llama", partial_rotary_factor=0.5),
        "llama partial yarn": shaped("llama", partial_rotary_factor=0.5, rope_scaling=YARN),
        "llama nested": shaped("llama", rope_parameters=dict(full_attention=dict(rope_type="linear", factor=4.0, rope_theta=3e6))),
        "qwen3 nested": shaped("qwen3", head_dim=16, rope_parameters=dict(
            full_attention=dict(rope_type="linear", factor=4.0, rope_theta=3e6))),
        "llama attn_factor": shaped("llama", rope_scaling=dict(YARN, attn_factor=0.5)),
        "llama su": shaped("llama", rope_scaling=dict(LONG, rope_type="su")),
        "llama ntk": shaped("llama", rope_scaling=dict(rope_type="ntk", factor=4.0)),
        "llama alpha": shaped("llama", rope_scaling=dict(type="dynamic", factor=2.0, alpha=100.0)),
        "gpt_oss null scaling": shaped("gpt_oss", head_dim=16, max_position_embeddings=131072, rope_scaling=None),
        "apertus theta": shaped("apertus", max_position_embeddings=16384, rope_theta=5e5),
        "type conflict": shaped("llama", rope_scaling=dict(rope_type="linear", type="dynamic", factor=4.0)),
        "theta conflict": shaped("llama", rope_theta=5e5, rope_parameters=dict(rope_type="default", rope_theta=1e6)),
        "outside text_config": dict(model_type="llava", rope_scaling=dict(rope_type="linear", factor=4.0),
                                    text_config=dict(SHAPE, model_type="llama", rope_theta=5e5)),
        "nested original outside": shaped("gemma3_text", head_dim=16, original_max_position_embeddings=64, rope_parameters=dict(
            full_attention=dict(rope_type="yarn", factor=4.0, rope_theta=1e6),
            sliding_attention=dict(rope_type="default", rope_theta=1e4))),
        "qwen2 head_dim null yarn": shaped("qwen2", head_dim=None, rope_scaling=YARN),
    }


def misread(name, config):
    try:
        tables = tables_of(config, [128])
    except Exception as error:
        return dict(raises=type(error).__name__)
    out = dict(tables=tables)
    if name == "llama partial yarn":
        try:
            AutoModelForCausalLM.from_config(text_config(config))(torch.arange(7)[None])
        except Exception as error:
            out["forwardRaises"] = type(error).__name__
    return out


TINY = dict(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=8, max_position_embeddings=256,
            vocab_size=32, intermediate_size=32, pad_token_id=0, bos_token_id=1, eos_token_id=2)
MOE = dict(num_experts=2, num_local_experts=2, num_experts_per_tok=1, moe_intermediate_size=16,
           shared_expert_intermediate_size=16)


def model_cases():
    tiny = lambda model_type, **keys: dict(TINY, model_type=model_type, **keys)
    latent = lambda model_type, **keys: dict(TINY, **{**LATENT, **dict(vocab_size=32, num_hidden_layers=2, first_k_dense_replace=1)},
                                             model_type=model_type, **keys)
    yarn = dict(type="yarn", factor=4.0, original_max_position_embeddings=64, mscale=1.0, mscale_all_dim=0.8)
    return {
        "llama": tiny("llama"),
        "mistral window": tiny("mistral", sliding_window=4),
        "qwen2 full": tiny("qwen2"),
        "qwen2 windows": tiny("qwen2", use_sliding_window=True, sliding_window=4, max_window_layers=5),
        "qwen2_moe windows": tiny("qwen2_moe", use_sliding_window=True, sliding_window=4, max_window_layers=5, **MOE),
        "qwen3": tiny("qwen3", head_dim=32),
        "gemma": tiny("gemma", head_dim=32),
        "gemma2": tiny("gemma2", head_dim=16, sliding_window=4),
        "gemma3": tiny("gemma3_text", head_dim=16, sliding_window=4),
        "gemma3 pattern 3": tiny("gemma3_text", head_dim=16, sliding_window=4, sliding_window_pattern=3),
        "gemma4": tiny("gemma4_text", head_dim=16, global_head_dim=32, sliding_window=4, hidden_size_per_layer_input=0),
        "phi": tiny("phi", num_key_value_heads=4),
        "phi3": tiny("phi3", sliding_window=6),
        "stablelm": tiny("stablelm", num_key_value_heads=4),
        "gpt_neox": {k: v for k, v in tiny("gpt_neox").items() if k != "num_key_value_heads"},
        "gptj": dict(model_type="gptj", n_embd=64, n_head=2, n_layer=2, n_positions=64, rotary_dim=16, vocab_size=32,
                     bos_token_id=1, eos_token_id=2),
        "smollm3": tiny("smollm3"),
        "smollm3 list": tiny("smollm3", no_rope_layers=[0, 1, 1, 0, 1, 0, 1, 1]),
        "smollm3 interval": tiny("smollm3", no_rope_layer_interval=3),
        "smollm3 windows": tiny("smollm3", use_sliding_window=True, sliding_window=4),
        "llama4": tiny("llama4_text", head_dim=16, attention_chunk_size=4, intermediate_size_mlp=32, num_local_experts=2,
                       no_rope_layers=[]),
        "llama4 list": tiny("llama4_text", head_dim=16, attention_chunk_size=4, intermediate_size_mlp=32, num_local_experts=2,
                            no_rope_layers=[1, 1, 0, 1, 0, 1, 1, 1]),
        "cohere": tiny("cohere"),
        "cohere2": tiny("cohere2", sliding_window=4),
        "cohere2 pattern 2": tiny("cohere2", sliding_window=4, sliding_window_pattern=2),
        "exaone4": tiny("exaone4", sliding_window=4),
        "exaone4 all global": tiny("exaone4", sliding_window=None, layer_types=["full_attention"] * 8),
        "olmo2": tiny("olmo2"),
        "olmo3": tiny("olmo3", sliding_window=4),
        "gpt_oss": tiny("gpt_oss", head_dim=16, sliding_window=4, num_local_experts=2, num_experts_per_tok=1),
        "glm": tiny("glm", head_dim=16),
        "glm4": tiny("glm4", head_dim=16),
        "nemotron": tiny("nemotron"),
        "starcoder2": tiny("starcoder2", sliding_window=4),
        "granite": tiny("granite"),
        "ernie4_5": tiny("ernie4_5", head_dim=16),
        "helium": tiny("helium", head_dim=16),
        "afmoe": tiny("afmoe", head_dim=16, sliding_window=4, **MOE),
        "ministral": tiny("ministral", head_dim=16, sliding_window=4),
        "ministral3": tiny("ministral3", head_dim=16, rope_parameters=dict(
            YARN, rope_theta=1e6, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1)),
        "falcon": dict(model_type="falcon", hidden_size=64, num_attention_heads=4, num_hidden_layers=2, vocab_size=32,
                       alibi=False),
        "deepseek_v2 yarn": latent("deepseek_v2", rope_scaling=yarn),
        "deepseek_v3 yarn": latent("deepseek_v3", rope_scaling=yarn),
        "deepseek_v3 not interleaved": latent("deepseek_v3", rope_interleave=False),
        "deepseek_v3 default": latent("deepseek_v3"),
        "deepseek_v32 yarn": latent("deepseek_v32", rope_scaling=yarn, index_head_dim=32, index_n_heads=2, index_topk=8),
        "falcon_h1": tiny("falcon_h1", num_hidden_layers=2, head_dim=16, mamba_d_ssm=64, mamba_n_heads=4, mamba_d_head=16,
                          mamba_d_state=8, mamba_chunk_size=8),
    }


def mask_in(args, kwargs):
    """How many of the 7 keys the last query sees, from the additive mask that the attention gets."""
    masks = [v for v in [*args, *kwargs.values()] if torch.is_tensor(v) and v.dim() == 4 and v.shape[-2:] == (7, 7)]
    if not masks:
        return 7
    row = masks[0][0, 0, -1]
    return int(row.sum()) if row.dtype == torch.bool else int((row == 0).sum())


def run_model(config):
    """Which layers rotate, how, over which window, with which softmax scale: from one forward pass."""
    cfg = text_config(config)
    cfg._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(cfg).eval()
    module = module_of(cfg)
    current = {"layer": None}
    masks = {}
    calls = []
    attentions = {}
    for name, part in model.named_modules():
        layer = getattr(part, "layer_idx", None)
        if layer is not None and "ttention" in type(part).__name__:
            attentions[layer] = part
            part.register_forward_pre_hook(
                lambda m, a, k, layer=layer: (current.update(layer=layer), masks.update({layer: mask_in(a, k)}))[0],
                with_kwargs=True,
            )
    names = [n for n in dir(module) if n.startswith("apply_rotary")]
    originals = {n: getattr(module, n) for n in names}

    def recorder(original):
        def wrapped(*args, **kwargs):
            calls.append((current["layer"], original, args, kwargs))
            return original(*args, **kwargs)

        return wrapped

    for n in names:
        setattr(module, n, recorder(originals[n]))
    try:
        with torch.no_grad():
            model(torch.arange(7)[None] % 30)
    finally:
        for n in names:
            setattr(module, n, originals[n])
    rotating = sorted({layer for layer, *_ in calls})
    # The attention's own, which is the first: the indexer of DeepSeek V3.2 rotates after it, in halves.
    layouts = {layer: layout_of(original, args, kwargs) for layer, original, args, kwargs in reversed(calls)}
    layers = sorted(attentions)
    out = dict(
        rotating=rotating,
        layouts=sorted(set(layouts.values())),
        # Keys that the last of the 7 queries sees.
        visible=[masks[i] for i in layers],
    )
    first = attentions[layers[0]]
    head_dim = getattr(first, "qk_head_dim", None)
    if head_dim is not None:
        out["softmaxFactor"] = first.scaling * math.sqrt(head_dim)
    return out


def layout_of(original, args, kwargs):
    """"interleaved" if channel 0 meets channel 1 in a score between two positions, "half" if it meets the middle."""
    args = list(args)
    single = len(args) < 2 or not torch.is_tensor(args[1]) or args[1].dim() != args[0].dim()
    q = args[0]
    axis = [i for i, n in enumerate(q.shape) if n == 7][0]
    width = q.shape[-1]

    def rotate(channel):
        x = torch.zeros_like(q)
        x[..., channel] = 1
        if single:
            return original(x, *args[1:], **kwargs)
        y = original(x, torch.zeros_like(args[1]), *args[2:], **kwargs)
        return y[0]

    def score(j, m):
        a = rotate(j).select(axis, 6).flatten(0, -2)[0]
        b = rotate(m).select(axis, 0).flatten(0, -2)[0]
        return float((a * b).sum())

    met = [m for m in range(1, width) if abs(score(0, m)) > 1e-3]
    assert len(met) == 1, met
    return "interleaved" if met[0] == 1 else "half"


def embedding_cases():
    bert = dict(hidden_size=16, num_attention_heads=2, num_hidden_layers=2, intermediate_size=16, vocab_size=32,
                max_position_embeddings=24)
    gpt = dict(n_embd=16, n_head=2, n_layer=2, n_positions=24, vocab_size=32, bos_token_id=1, eos_token_id=2)
    bart = dict(d_model=16, encoder_layers=2, decoder_layers=3, encoder_attention_heads=2, decoder_attention_heads=2,
                encoder_ffn_dim=16, decoder_ffn_dim=16, vocab_size=32, max_position_embeddings=24, pad_token_id=1,
                decoder_start_token_id=2)
    cases = {name: dict(gpt, model_type=name) for name in ("gpt2", "gpt_bigcode", "openai-gpt")}
    cases["gpt_neo"] = dict(bert, num_layers=2, num_heads=2, attention_types=[[["global", "local"], 1]], model_type="gpt_neo")
    cases["opt"] = dict(bert, ffn_dim=16, word_embed_proj_dim=16, model_type="opt")
    cases["opt projected"] = dict(bert, ffn_dim=16, word_embed_proj_dim=8, model_type="opt")
    cases["distilbert"] = dict(dim=16, n_heads=2, n_layers=2, hidden_dim=16, vocab_size=32, max_position_embeddings=24,
                               model_type="distilbert")
    for name in ("bert", "electra", "albert", "roberta", "xlm-roberta", "camembert", "biogpt"):
        cases[name] = dict(bert, model_type=name)
    cases["electra narrow"] = dict(bert, embedding_size=8, model_type="electra")
    cases["roberta pad 3"] = dict(bert, pad_token_id=3, model_type="roberta")
    for name in ("bart", "mbart", "marian", "pegasus"):
        cases[name] = dict(bart, model_type=name)
    return cases


def embeddings_of(config):
    """Rows of the position table, its width, the row that the first token gets, and for fixed tables the second row."""
    cfg = CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config))
    model = transformers.AutoModel.from_config(cfg).eval()
    tables = {
        part.weight.data_ptr(): part
        for name, part in model.named_modules()
        if isinstance(part, torch.nn.Embedding) and any(w in name for w in ("position", "wpe", "positions_embed"))
    }
    used = []
    original = torch.nn.functional.embedding

    def recorder(ids, weight, *args, **kwargs):
        if weight.data_ptr() in tables:
            used.append((tables[weight.data_ptr()], int(ids.min()), int(ids.max())))
        return original(ids, weight, *args, **kwargs)

    torch.nn.functional.embedding = recorder
    try:
        with torch.no_grad():
            ids = 4 + torch.arange(7)[None]
            model(ids, decoder_input_ids=ids) if cfg.is_encoder_decoder else model(ids)
    finally:
        torch.nn.functional.embedding = original
    assert used
    part, first, last = used[0]
    assert last - first == 6
    out = dict(rows=part.weight.shape[0], width=part.weight.shape[1], first=first, stacks=len(used))
    if config["model_type"] in ("marian", "pegasus"):
        out["row5"] = numbers(part.weight[5])
    return out


def t5_cases():
    t5 = dict(d_model=16, d_kv=8, d_ff=16, num_layers=3, num_decoder_layers=2, num_heads=2, vocab_size=32,
              relative_attention_num_buckets=16, relative_attention_max_distance=32, pad_token_id=0, decoder_start_token_id=0)
    return {name: dict(t5, model_type=name) for name in ("t5", "mt5", "umt5")}


def t5_of(config):
    cfg = CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config))
    model = transformers.AutoModel.from_config(cfg)
    out = {}
    for name in ("encoder", "decoder"):
        blocks = getattr(model, name).block
        layers = [b.layer[0].SelfAttention for b in blocks]
        owners = [i for i, a in enumerate(layers) if getattr(a, "has_relative_attention_bias", False)]
        out[name] = dict(layers=len(layers), withBias=owners, bidirectional=not layers[0].is_decoder,
                         table=list(layers[0].relative_attention_bias.weight.shape))
    return out


def main():
    tables = []
    for name, (config, lengths, read) in table_cases().items():
        try:
            entry = dict(name=name, lengths=lengths, tables=tables_of(read, lengths), saved=saved(read))
        except Exception as error:
            raise RuntimeError(name) from error
        if config is not None:
            entry["config"] = config
        tables.append(entry)
    models = []
    for name, config in model_cases().items():
        try:
            models.append(dict(name=name, config=config, **run_model(config)))
        except Exception as error:
            raise RuntimeError(name) from error
    misreads = [dict(name=name, config=config, **misread(name, config)) for name, config in misread_cases().items()]
    embeddings = [dict(name=name, config=config, **embeddings_of(config)) for name, config in embedding_cases().items()]
    t5 = [dict(name=name, config=config, **t5_of(config)) for name, config in t5_cases().items()]
    out = dict(
        generator="reference/hf_configs.py",
        versions=dict(transformers=transformers.__version__, torch=torch.__version__),
        tables=tables,
        models=models,
        misread=misreads,
        embeddings=embeddings,
        t5=t5,
    )
    target = ROOT / "test/fixtures/hf-configs.json"
    target.write_text(json.dumps(out, separators=(",", ":")) + "\n")
    print(len(tables), "tables", len(models), "models", len(misreads), "misread,", target.stat().st_size, "bytes")


if __name__ == "__main__":
    main()

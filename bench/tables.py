"""numpy's side of bench/tables.ts: cos and sin tables of positions × frequencies, by the way that the line names.

Started by bench/tables.ts, which sends one way a line and reads back the seconds that it took. Frequencies arrive as the
first line, so that both sides compute the same angles.
"""

import json
import sys
import time

import numpy as np

CHUNKS = (64, 1024)  # rows whose angles stay in a core's first (32 kB) and second (512 kB) cache


def main():
    setup = json.loads(sys.stdin.readline())
    frequencies = np.array(setup["frequencies"])
    count = setup["positions"]
    positions = np.arange(count, dtype=np.float64)
    shape = (count, len(frequencies))
    buffers = {}

    def outputs(dtype):
        if dtype not in buffers:
            buffers.clear()  # one set at a time: two would be 1.5 GB
            buffers[dtype] = [np.zeros(shape, dtype) for _ in range(3 if dtype == np.float64 else 2)]
        return buffers[dtype]

    def fresh64():
        """As one would write it: three new arrays."""
        angles = positions[:, None] * frequencies
        return np.cos(angles), np.sin(angles)

    def whole64():
        """Whole arrays, every output preallocated."""
        cos, sin, angles = outputs(np.float64)
        np.multiply(positions[:, None], frequencies, out=angles)
        np.cos(angles, out=cos)
        np.sin(angles, out=sin)
        return cos, sin

    def chunked64(rows):
        """Preallocated, in chunks whose angles stay in cache."""
        cos, sin, _ = outputs(np.float64)
        angles = np.empty((rows, len(frequencies)))
        for start in range(0, count, rows):
            stop = min(start + rows, count)
            part = angles[: stop - start]
            np.multiply(positions[start:stop, None], frequencies, out=part)
            np.cos(part, out=cos[start:stop])
            np.sin(part, out=sin[start:stop])
        return cos, sin

    def chunked32(rows):
        """Angles, cos and sin in float64, rounded once to float32: the accuracy that Longhand's float32 tables have."""
        cos, sin = outputs(np.float32)
        angles = np.empty((rows, len(frequencies)))
        value = np.empty_like(angles)
        for start in range(0, count, rows):
            stop = min(start + rows, count)
            part, rounded = angles[: stop - start], value[: stop - start]
            np.multiply(positions[start:stop, None], frequencies, out=part)
            np.cos(part, out=rounded)
            cos[start:stop] = rounded
            np.sin(part, out=rounded)
            sin[start:stop] = rounded
        return cos, sin

    def coarse32(rows):
        """Everything in float32, angles too: fast, and 2 % off at a million tokens. For scale, not a rival."""
        cos, sin = outputs(np.float32)
        angles = np.empty((rows, len(frequencies)), np.float32)
        narrow, few = positions.astype(np.float32), frequencies.astype(np.float32)
        for start in range(0, count, rows):
            stop = min(start + rows, count)
            part = angles[: stop - start]
            np.multiply(narrow[start:stop, None], few, out=part)
            np.cos(part, out=cos[start:stop])
            np.sin(part, out=sin[start:stop])
        return cos, sin

    ways = {"fresh64": fresh64, "whole64": whole64}
    for way in (chunked64, chunked32, coarse32):
        for rows in CHUNKS:
            ways[f"{way.__name__}/{rows}"] = lambda way=way, rows=rows: way(rows)
    features = [name for name, here in np._core._multiarray_umath.__cpu_features__.items() if here]
    print(json.dumps({"numpy": np.__version__, "python": sys.version.split()[0], "features": features}), flush=True)
    for line in sys.stdin:
        name, probe = line.split()
        began, cpu = time.perf_counter(), time.process_time()
        cos, sin = ways[name]()
        took = {"seconds": time.perf_counter() - began, "cpuSeconds": time.process_time() - cpu}
        row = int(probe)
        print(json.dumps({**took, "cos": cos[row].tolist(), "sin": sin[row].tolist()}), flush=True)


if __name__ == "__main__":
    main()

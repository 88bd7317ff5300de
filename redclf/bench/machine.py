"""What the machine is, and how fast it multiplies matrices."""

from __future__ import annotations

import os
import platform
import re
import statistics
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

#: Sides of the matrices that are multiplied: like the encoder's products, with 256 tokens.
_SIDES = (256, 1536, 1536)
_REPEATS = 7


def describe() -> dict[str, Any]:
    """Return cores, processor, load and versions."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": _processor(),
        "load_average": load,
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in ("numpy", "onnxruntime", "tokenizers")},
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    found = re.search(r"model name\s*:\s*(.+)", text)
    return found.group(1) if found else platform.processor()


def median_seconds(work: Callable[[], object], repeats: int = _REPEATS) -> float:
    """Return the median time of a piece of work, after one run that does not count."""
    work()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def _operations() -> int:
    rows, inner, columns = _SIDES
    return 2 * rows * inner * columns


def fp32_rate(threads: int | None = None) -> float | None:
    """Return operations a second of a matrix product in fp32 on ONNX Runtime; None without the package onnx."""
    return _rate("MatMul", threads)


def int8_rate(threads: int | None = None) -> float | None:
    """Return operations a second of a matrix product in int8 on ONNX Runtime; None without the package onnx."""
    return _rate("MatMulInteger", threads)


def _rate(kind: str, threads: int | None) -> float | None:
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        return None
    import onnxruntime

    rows, inner, columns = _SIDES
    rng = np.random.default_rng(0)
    is_float = kind == "MatMul"
    given, made = (TensorProto.FLOAT, TensorProto.FLOAT) if is_float else (TensorProto.UINT8, TensorProto.INT32)
    weight = rng.standard_normal((inner, columns)).astype(np.float32)
    stored = weight if is_float else np.clip(40 * weight, -127, 127).astype(np.int8)
    graph = helper.make_graph(
        [helper.make_node(kind, ["a", "b"], ["c"])],
        "rate",
        [helper.make_tensor_value_info("a", given, [rows, inner])],
        [helper.make_tensor_value_info("c", made, [rows, columns])],
        [numpy_helper.from_array(stored, "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    if threads:
        options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    value = rng.standard_normal((rows, inner)).astype(np.float32)
    value = value if is_float else np.clip(40 * value + 128, 0, 255).astype(np.uint8)
    return _operations() / median_seconds(lambda: session.run(None, {"a": value}))


def install_bytes(name: str = "redclf") -> int | None:
    """Return the bytes of a package with all that it needs, extras left out; None where it is not installed."""
    seen: set[str] = set()
    waiting = [name]
    total = 0
    while waiting:
        wanted = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if wanted in seen:
            continue
        seen.add(wanted)
        try:
            found = metadata.distribution(wanted)
        except metadata.PackageNotFoundError:
            if wanted == name:
                return None
            continue
        for file in found.files or ():
            path = Path(str(found.locate_file(file)))
            if path.is_file():
                total += path.stat().st_size
        for requirement in found.requires or ():
            if "extra ==" not in requirement:
                waiting.append(re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0])
    return total

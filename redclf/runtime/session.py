"""Opening ONNX models: one place for options and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from redclf.errors import ModelError


def open_session(path: Path, threads: int | None = None) -> Any:
    """Return an ONNX Runtime session on the CPU.

    Raises
    ------
    ModelError
        If the file is missing or can't be loaded.
    """
    import onnxruntime

    if not path.is_file():
        raise ModelError(f"{path}: expected an ONNX model, found none")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if threads:
        options.intra_op_num_threads = threads
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime raises its own types, which are not public
        first = str(error).strip().split("\n")[0][:200]
        raise ModelError(f"{path}: can't be loaded: {first}") from None

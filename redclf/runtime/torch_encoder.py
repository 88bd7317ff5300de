"""The cross-encoder in torch, on a CPU or GPU: the weights of the model's ONNX file, restored to fp32."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from redclf.errors import ModelError
from redclf.runtime.encoder import Pair, feeds

FloatArray = npt.NDArray[np.floating[Any]]


class TorchEncoder:
    """Scores pairs with torch, in batches of like length.

    Parameters
    ----------
    path : Path
        The ONNX model, from which the weights are taken.
    heads : int
        Attention heads of a layer.
    device : str, optional
        As torch names it; the GPU where there is one by default, else the CPU.
    threads : int, optional
        Of torch, for the whole process.
    batch : int
        Pairs a call.

    Raises
    ------
    ModelError
        If torch, transformers or onnx is not installed, there is no such device, or the file holds another model.
    """

    def __init__(
        self, path: Path, heads: int, device: str | None = None, threads: int | None = None, batch: int = 16
    ) -> None:
        try:
            import onnx  # noqa: F401
            import torch
            import transformers  # noqa: F401
        except ImportError as error:
            raise ModelError(
                f"the torch backend needs {error.name}, which is not installed (pip install 'redclf[train]')"
            ) from None
        if threads:
            torch.set_num_threads(threads)
        self._torch = torch
        self._batch = batch
        name = device or ("cuda" if torch.cuda.is_available() else "cpu")
        module = _module(path, heads)
        try:
            self._device = torch.device(name)
            self._module = module.to(self._device)
        except (RuntimeError, AssertionError) as error:
            raise ModelError(f"device {name}: {str(error).splitlines()[0]}") from None

    def score(self, pairs: Sequence[Pair]) -> FloatArray:
        """Return the outputs of pairs, shape (n_pairs, 10)."""
        torch = self._torch
        out = np.zeros((len(pairs), 10), dtype=np.float32)
        order = sorted(range(len(pairs)), key=lambda place: len(pairs[place][0]))
        with torch.inference_mode():
            for start in range(0, len(order), self._batch):
                chunk = order[start : start + self._batch]
                inputs = feeds([pairs[place] for place in chunk])
                tensors = {name: torch.from_numpy(values).to(self._device) for name, values in inputs.items()}
                out[chunk] = self._module(**tensors).cpu().numpy()
        return out


def _module(path: Path, heads: int) -> Any:
    """Return the module with the file's weights."""
    import torch
    from transformers import AutoConfig, AutoModel

    from redclf.model.pair_encoder import PairEncoder, PairEncoderConfig

    weights = restore_weights(path)
    try:
        vocabulary, hidden = weights["embeddings.word_embeddings.weight"].shape
        frozen = len({name.split(".")[1] for name in weights if name.startswith("lower.")})
        trained = len({name.split(".")[1] for name in weights if name.startswith("upper.")})
        any_layer = "upper.0" if trained else "lower.0"
        config = AutoConfig.for_model(
            "bert",
            vocab_size=vocabulary,
            hidden_size=hidden,
            num_hidden_layers=frozen + trained,
            num_attention_heads=heads,
            intermediate_size=weights[f"{any_layer}.intermediate.dense.weight"].shape[0],
            max_position_embeddings=weights["embeddings.position_embeddings.weight"].shape[0],
            type_vocab_size=weights["embeddings.token_type_embeddings.weight"].shape[0],
        )
        base = AutoModel.from_config(config, attn_implementation="sdpa")  # type: ignore[no-untyped-call]
        module = PairEncoder(base, PairEncoderConfig(frozen + trained, frozen))
        state = {name: torch.from_numpy(values) for name, values in weights.items()}
        missing, unexpected = module.load_state_dict(state, strict=False)
    except (KeyError, IndexError, RuntimeError, ValueError) as error:
        raise ModelError(f"{path}: expected the weights of a pair encoder: {str(error).splitlines()[0]}") from None
    lost = [name for name in missing if not name.endswith("position_ids")]
    if lost or unexpected:
        counts = f"{len(lost)} too few, {len(unexpected)} too many"
        raise ModelError(f"{path}: expected the weights of a pair encoder, got {counts}")
    return module.eval()


def restore_weights(path: Path) -> dict[str, npt.NDArray[np.float32]]:
    """Return the weights of an exported encoder in fp32, by their names in `PairEncoder`.

    Raises
    ------
    ModelError
        If there is no such file, or it is not ONNX.
    """
    import onnx
    from onnx import numpy_helper

    if not path.is_file():
        raise ModelError(f"{path}: expected an ONNX model, found none")
    try:
        graph = onnx.load(str(path)).graph
    except Exception as error:  # protobuf's own type
        raise ModelError(f"{path}: can't be loaded: {str(error).splitlines()[0]}") from None
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    made_by = {node.output[0]: node for node in graph.node}

    def value(name: str) -> npt.NDArray[Any] | None:
        """Return a weight as it enters a product, whatever it is stored as."""
        if name in stored:
            return stored[name]
        node = made_by.get(name)
        if node is not None and node.op_type in ("Cast", "Identity"):
            return value(node.input[0])
        if node is not None and node.op_type == "DequantizeLinear" and node.input[0] in stored:
            scale, zero = stored[node.input[1]], stored[node.input[2]] if len(node.input) > 2 else 0
            restored: npt.NDArray[Any] = (stored[node.input[0]].astype(np.float32) - zero) * scale
            return restored
        return None

    found: dict[str, npt.NDArray[Any]] = {}
    # Weights that are equal are stored once, under one of their names: the place of use tells whose they are.
    for node in graph.node:
        module = ".".join(node.name.strip("/").split("/")[:-1])
        if node.op_type == "MatMul":
            weight = value(node.input[1])
            if weight is not None:
                found[f"{module}.weight"] = weight.T
        elif node.op_type == "Add" and f"{module}.weight" in found:
            bias = next((found_bias for name in node.input if (found_bias := value(name)) is not None), None)
            if bias is not None:
                found[f"{module}.bias"] = bias
        elif node.op_type in ("LayerNormalization", "Gemm"):
            for part, name in zip(("weight", "bias"), node.input[1:3], strict=True):
                values = value(name)
                if values is not None:
                    found[f"{module}.{part}"] = values
    for name, values in stored.items():
        if name.startswith("embeddings.") and "_embeddings.weight" in name and not name.endswith("_scale"):
            plain = name.removesuffix("_int8")
            scale = stored[f"{plain}_scale"] if plain != name else np.float32(1)
            found[plain] = values.astype(np.float32) * scale
    return {name: np.array(values, dtype=np.float32, order="C") for name, values in found.items()}

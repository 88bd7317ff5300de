"""Low-rank adapters on the attention projections, merged into the weights before anything is saved."""

from __future__ import annotations

import torch

from redclf.model.pair_encoder import PairEncoder

#: Query, key, value and output of the self-attention of every layer.
TARGETS = r"(lower|upper)\.\d+\.attention\.(self\.(query|key|value)|output\.dense)"


def add_adapters(module: PairEncoder, rank: int) -> None:
    """Put adapters into all layers, in place; they and the head are all that is trained.

    Parameters
    ----------
    module : PairEncoder
    rank : int
        Of the adapters; their scale is 2.
    """
    from peft import LoraConfig, inject_adapter_in_model

    inject_adapter_in_model(LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.05, target_modules=TARGETS), module)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_("lora_" in name or name.startswith("head."))


@torch.no_grad()
def merge_adapters(module: PairEncoder) -> None:
    """Add the adapters to the weights that they adapt and take them out, in place."""
    from peft.tuners.lora import LoraLayer

    for name, layer in list(module.named_modules()):
        if isinstance(layer, LoraLayer):
            layer.merge()
            parent, _, own = name.rpartition(".")
            setattr(module.get_submodule(parent), own, layer.get_base_layer())
    for parameter in module.parameters():
        parameter.requires_grad_(True)

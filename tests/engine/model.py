"""Owns the generated models: tiny, random and deterministic weights in the shape of an architecture.

What such a model says is gibberish. Tokenising, templating, reuse of the cache and the reported usage are the
engine's own, and real. `llama` is a full-attention model; `kimi-k3` is a hybrid of one linear-attention (KDA) and one
latent-attention (MLA) layer, whose recurrent state can be reused only from a checkpoint.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.engine import vocabulary
from tests.engine.vocabulary import Vocabulary

TEMPLATE = Path(__file__).with_name("template.jinja")
CONTEXT = 1_048_576
WIDTH = 32
FEED_FORWARD = 64
SEED = 7


@dataclass(frozen=True, slots=True)
class Tensor:
    """Shape in ggml's order. `fill` is normal (f32), half (normal, f16), ones or decay (negative f32)."""

    name: str
    shape: tuple[int, ...]
    fill: str = "half"


def build(arch: str, directory: Path) -> Path:
    """The model file of an architecture, written once per content of this package. KeyError for an unknown one."""
    sources = [TEMPLATE, Path(__file__), Path(vocabulary.__file__)]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    target = directory / f"{arch}-{digest}.gguf"
    if not target.exists():
        directory.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(f".{os.getpid()}")
        _write(arch, partial)
        partial.replace(target)
    return target


def _write(arch: str, path: Path) -> None:
    import gguf

    words = vocabulary.load()
    settings, tensors = ARCHITECTURES[arch]
    writer = gguf.GGUFWriter(str(path), arch)
    _describe(writer, arch, words)
    settings(writer, arch)
    _fill(writer, [*_shared(len(words)), *tensors(len(words))])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _describe(writer: Any, arch: str, words: Vocabulary) -> None:
    writer.add_name(f"tiny-random-{arch}")
    writer.add_file_type(1)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(list(words.tokens))
    writer.add_token_types(list(words.kinds))
    writer.add_token_merges(list(words.merges))
    writer.add_bos_token_id(words.id("[BOS]"))
    writer.add_eos_token_id(words.id("<|im_end|>"))
    writer.add_pad_token_id(words.id("[PAD]"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE.read_text(encoding="utf-8"))


def _fill(writer: Any, tensors: list[Tensor]) -> None:
    import numpy as np

    random = np.random.default_rng(SEED)
    fills: dict[str, Callable[[tuple[int, ...]], Any]] = {
        "ones": lambda shape: np.ones(shape, np.float32),
        "normal": lambda shape: random.normal(0, 0.1, shape).astype(np.float32),
        "half": lambda shape: random.normal(0, 0.1, shape).astype(np.float16),
        "decay": lambda shape: -np.abs(random.normal(0, 0.1, shape)).astype(np.float32),
    }
    for tensor in tensors:
        writer.add_tensor(tensor.name, fills[tensor.fill](tensor.shape[::-1]))


def _shared(words: int) -> Iterator[Tensor]:
    yield Tensor("token_embd.weight", (WIDTH, words))
    yield Tensor("output_norm.weight", (WIDTH,), "ones")


def _feed_forward(layer: str) -> Iterator[Tensor]:
    yield Tensor(f"{layer}.ffn_norm.weight", (WIDTH,), "ones")
    yield Tensor(f"{layer}.ffn_gate.weight", (WIDTH, FEED_FORWARD))
    yield Tensor(f"{layer}.ffn_up.weight", (WIDTH, FEED_FORWARD))
    yield Tensor(f"{layer}.ffn_down.weight", (FEED_FORWARD, WIDTH))


def _llama_settings(writer: Any, arch: str) -> None:
    writer.add_block_count(1)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(WIDTH // 2)
    writer.add_rope_freq_base(1e6)


def _llama_tensors(words: int) -> Iterator[Tensor]:
    heads, size = 2, WIDTH // 2
    yield Tensor("blk.0.attn_norm.weight", (WIDTH,), "ones")
    yield Tensor("blk.0.attn_q.weight", (WIDTH, heads * size))
    yield Tensor("blk.0.attn_k.weight", (WIDTH, size))
    yield Tensor("blk.0.attn_v.weight", (WIDTH, size))
    yield Tensor("blk.0.attn_output.weight", (heads * size, WIDTH))
    yield from _feed_forward("blk.0")


# Head, latent rank, rotary, plain and value sizes of the kimi-k3 model; one attention head.
HEAD, RANK, ROTARY, PLAIN, VALUE = 64, 64, 32, 32, 32

KIMI_SETTINGS: dict[str, int | float] = {
    "attention.key_length": RANK + ROTARY,
    "attention.value_length": RANK,
    "attention.key_length_mla": PLAIN + ROTARY,
    "attention.value_length_mla": VALUE,
    "attention.kv_lora_rank": RANK,
    "ssm.conv_kernel": 4,
    "kda.head_dim": HEAD,
    "kda.gate_lower_bound": -5.0,
    "expert_feed_forward_length": FEED_FORWARD,
    "expert_shared_count": 1,
    "expert_count": 2,
    "expert_used_count": 1,
    "expert_gating_func": 2,
    "leading_dense_block_count": 2,
    "attn_res.block_size": 12,
    "activation.situ_beta": 4.0,
    "activation.situ_linear_beta": 25.0,
}


def _kimi_settings(writer: Any, arch: str) -> None:
    writer.add_block_count(2)
    writer.add_head_count(1)
    writer.add_head_count_kv([0, 1])
    writer.add_rope_dimension_count(ROTARY)
    for name, value in KIMI_SETTINGS.items():
        add = writer.add_float32 if isinstance(value, float) else writer.add_uint32
        add(f"{arch}.{name}", value)


def _kimi_tensors(words: int) -> Iterator[Tensor]:
    yield Tensor("output.weight", (WIDTH, words))
    yield Tensor("output_res_score.weight", (WIDTH,), "normal")
    for layer, attention in (("blk.0", _linear_attention), ("blk.1", _latent_attention)):
        yield Tensor(f"{layer}.attn_norm.weight", (WIDTH,), "ones")
        yield Tensor(f"{layer}.attn_res_score.weight", (WIDTH,), "normal")
        yield Tensor(f"{layer}.ffn_res_score.weight", (WIDTH,), "normal")
        yield from attention(layer)
        yield from _feed_forward(layer)


def _linear_attention(layer: str) -> Iterator[Tensor]:
    for part in "qkv":
        yield Tensor(f"{layer}.ssm_conv1d_{part}.weight", (4, 1, HEAD), "normal")
        yield Tensor(f"{layer}.attn_{part}.weight", (WIDTH, HEAD))
    yield Tensor(f"{layer}.ssm_f_a.weight", (WIDTH, HEAD))
    yield Tensor(f"{layer}.ssm_f_b.weight", (HEAD, HEAD))
    yield Tensor(f"{layer}.ssm_beta.weight", (WIDTH, 1))
    yield Tensor(f"{layer}.ssm_a", (1,), "decay")
    yield Tensor(f"{layer}.ssm_dt.bias", (HEAD,), "normal")
    yield Tensor(f"{layer}.ssm_g.weight", (WIDTH, HEAD))
    yield Tensor(f"{layer}.ssm_norm.weight", (HEAD,), "ones")
    yield Tensor(f"{layer}.attn_output.weight", (HEAD, WIDTH))


def _latent_attention(layer: str) -> Iterator[Tensor]:
    yield Tensor(f"{layer}.attn_kv_a_norm.weight", (RANK,), "ones")
    yield Tensor(f"{layer}.attn_q.weight", (WIDTH, PLAIN + ROTARY))
    yield Tensor(f"{layer}.attn_kv_a_mqa.weight", (WIDTH, RANK + ROTARY))
    yield Tensor(f"{layer}.attn_k_b.weight", (PLAIN, RANK, 1))
    yield Tensor(f"{layer}.attn_v_b.weight", (RANK, VALUE, 1))
    yield Tensor(f"{layer}.attn_output.weight", (VALUE, WIDTH))


Settings = Callable[[Any, str], None]
Tensors = Callable[[int], Iterator[Tensor]]
ARCHITECTURES: dict[str, tuple[Settings, Tensors]] = {
    "llama": (_llama_settings, _llama_tensors),
    "kimi-k3": (_kimi_settings, _kimi_tensors),
}

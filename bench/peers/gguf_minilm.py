"""all-MiniLM-L6-v2 as a GGUF file, the form that llama.cpp and so qmd reads: python -P gguf_minilm.py MODEL FILE

Names of tensors and of settings are those that llama.cpp gives to BERT. Needs the packages gguf and numpy.
"""

import json
import struct
import sys
from pathlib import Path

EMBEDDINGS = {
    "embeddings.word_embeddings.weight": "token_embd.weight",
    "embeddings.position_embeddings.weight": "position_embd.weight",
    "embeddings.token_type_embeddings.weight": "token_types.weight",
    "embeddings.LayerNorm.weight": "token_embd_norm.weight",
    "embeddings.LayerNorm.bias": "token_embd_norm.bias",
}
LAYER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
CONTROL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def convert(model: Path, file: Path) -> None:
    import gguf
    import numpy as np

    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    words = (model / "vocab.txt").read_text(encoding="utf-8").splitlines()
    writer = gguf.GGUFWriter(str(file), "bert")
    writer.add_name("all-MiniLM-L6-v2")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_type_count(config["type_vocab_size"])
    writer.add_token_list([_piece(word) for word in words])
    writer.add_token_types([3 if word in CONTROL else 1 for word in words])
    writer.add_pad_token_id(words.index("[PAD]"))
    writer.add_unk_token_id(words.index("[UNK]"))
    writer.add_bos_token_id(words.index("[CLS]"))
    writer.add_sep_token_id(words.index("[SEP]"))
    writer.add_mask_token_id(words.index("[MASK]"))
    data = (model / "model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    for name, held in json.loads(data[8 : 8 + size]).items():
        renamed = _name(name)
        if renamed and held["dtype"] == "F32":
            start, end = held["data_offsets"]
            raw = np.frombuffer(data[8 + size + start : 8 + size + end], dtype=np.float32)
            writer.add_tensor(renamed, raw.reshape(held["shape"]).copy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _piece(word: str) -> str:
    """A word piece as llama.cpp keeps it: the start of a word is marked, not its continuation."""
    if word.startswith("[") and word.endswith("]"):
        return word
    return word[2:] if word.startswith("##") else f"▁{word}"


def _name(name: str) -> str:
    """llama.cpp's name of a tensor; empty for what it does not hold."""
    if name in EMBEDDINGS:
        return EMBEDDINGS[name]
    if not name.startswith("encoder.layer."):
        return ""
    number, _, rest = name.removeprefix("encoder.layer.").partition(".")
    part, _, kind = rest.rpartition(".")
    return f"blk.{number}.{LAYER[part]}.{kind}"


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))

"""Trains the embedded tokenizer on this repository's own text.

    python3 tokenize/embedded/train.py tokenize/embedded/tokenizer.json   (needs PyPI tokenizers)

The stored file is the artefact: nothing depends on training it again, and a new
run over a changed repository gives another vocabulary.
"""
import json
import subprocess
import sys

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

# The split pattern of the Qwen2 family, so that the fast scanner is exercised.
PATTERN = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MARKERS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]

files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.go", "*.md", "*.jsonl", "*.py"], check=True, capture_output=True, text=True).stdout.split()
texts = [open(f, encoding="utf-8").read() for f in sorted(files)]

t = Tokenizer(models.BPE())
t.pre_tokenizer = pre_tokenizers.Sequence([
    pre_tokenizers.Split(Regex(PATTERN), "isolated"),
    pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)])
t.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=4096 - len(SPECIAL) - len(MARKERS), initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
d = json.loads(t.to_str())
n = len(d["model"]["vocab"])
d["added_tokens"] = [dict(id=n + i, content=c, single_word=False, lstrip=False, rstrip=False, normalized=False, special=c in SPECIAL) for i, c in enumerate(SPECIAL + MARKERS)]
with open(sys.argv[1], "w", encoding="utf-8") as f:
    json.dump(d, f, ensure_ascii=False, separators=(",", ":"))
    f.write("\n")

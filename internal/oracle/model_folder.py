"""A model folder made of a tokenizer and any chat template.

The control tokens that templates spell are added to the tokenizer, as the
family's own tokenizer has them.
"""
import json
import re
from pathlib import Path

STOPS = ["<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<turn|>", "<end_of_utterance>", "<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>", "<|return|>", "<|eot|>",
         "<|end|>", "<|user|>", "</s>"]
CONTROL = re.compile(r"<[|｜][^<>'\"\s{}]+[|｜]?>|</?[a-z_]+>|<[a-z_]+\|>")
BOS = "<|begin_of_text|>"


def control_tokens(*templates):
    """The control tokens that templates spell, in order."""
    return sorted({BOS}.union(*(CONTROL.findall(t) for t in templates), *({s for s in STOPS if s in t} for t in templates)))


class ModelFolder:
    """Writes tokenizer.json with tokens added; put changes the template."""

    def __init__(self, path, tokenizer, tokens):
        self.path, self.bos = Path(path), BOS
        definition = json.loads(Path(tokenizer).read_text(encoding="utf-8"))
        self.added = definition["added_tokens"]
        have = {a["content"] for a in self.added}
        first = max([a["id"] for a in self.added] + list(definition["model"]["vocab"].values())) + 1
        self.added += [{"id": first + i, "content": s, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
                       for i, s in enumerate(s for s in tokens if s not in have)]
        (self.path / "tokenizer.json").write_text(json.dumps(definition), encoding="utf-8")

    def put(self, template):
        """The folder's template is template, its stop token the first of STOPS that it spells and the tokenizer has."""
        self.template = template
        tokens = {a["content"] for a in self.added}
        self.eos = next((s for s in STOPS if s in template and s in tokens), "<|im_end|>")
        (self.path / "tokenizer_config.json").write_text(json.dumps({"bos_token": self.bos, "eos_token": self.eos}))
        (self.path / "chat_template.jinja").write_text(template, encoding="utf-8", newline="")

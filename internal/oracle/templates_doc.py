"""Writes docs/templates.md: what `turnpack certify` says of every template at hand.

usage: templates_doc.py TURNPACK TEMPLATES TOKENIZER_JSON > docs/templates.md

Each template is put into a folder with the tokenizer, to which the control
tokens that the template spells are added, as the family's own tokenizer has
them; eos_token is the first of STOPS that the template spells.
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

STOPS = ["<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<turn|>", "<end_of_utterance>", "<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>", "<|return|>", "<|eot|>",
         "<|end|>", "<|user|>", "</s>"]
CONTROL = re.compile(r"<[|｜][^<>'\"\s{}]+[|｜]?>|</?[a-z_]+>|<[a-z_]+\|>")
BOS = "<|begin_of_text|>"
SHORT = {"holds": "yes", "fails": "**no**", "n/a": "–"}


def certify(turnpack, folder):
    p = subprocess.run([turnpack, "certify", "--model", folder, "--json"], capture_output=True, text=True)
    if not p.stdout:
        return None, p.stderr.strip().replace(folder, "the folder")
    return json.loads(p.stdout)["findings"], ""


def main(turnpack, templates, tokenizer):
    definition = json.load(open(tokenizer, encoding="utf-8"))
    added = definition.pop("added_tokens")
    rest = json.dumps(definition)[:-1]
    first = max([a["id"] for a in added] + list(definition["model"]["vocab"].values())) + 1
    table, notes, names = [], {}, []
    with tempfile.TemporaryDirectory() as tmp:
        for path in sorted(Path(templates).glob("*.jinja")):
            text = path.read_bytes().decode()
            spelled = sorted(set(CONTROL.findall(text)) | {s for s in STOPS if s in text} | {BOS})
            have = {a["content"] for a in added}
            extra = [{"id": first + i, "content": s, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
                     for i, s in enumerate(s for s in spelled if s not in have)]
            eos = next((s for s in STOPS if s in text), "<|im_end|>")
            Path(tmp, "tokenizer.json").write_text(rest + ', "added_tokens": ' + json.dumps(added + extra) + "}", encoding="utf-8")
            Path(tmp, "tokenizer_config.json").write_text(json.dumps({"bos_token": BOS, "eos_token": eos}))
            Path(tmp, "chat_template.jinja").write_bytes(path.read_bytes())
            findings, refused = certify(turnpack, tmp)
            if findings is None:
                table.append((path.stem, {}))
                notes.setdefault("refused: " + refused[:150], []).append(path.stem)
                continue
            names = names or [f["property"] for f in findings]
            table.append((path.stem, {f["property"]: f["verdict"] for f in findings}))
            for f in findings:
                if f["verdict"] != "holds" and f.get("detail"):
                    detail = f["detail"] if len(f["detail"]) <= 170 else f["detail"][:170] + "…"
                    notes.setdefault((f["property"], detail), []).append(path.stem)
    print("# Chat templates, certified\n")
    print(f"What `turnpack certify` says of the {len(table)} templates of the templates kit. `internal/oracle/templates_doc.py` writes this page; `make conformance` compares it.\n")
    print("Each template stands beside the Qwen3 tokenizer with the control tokens that the template spells added to it, and with the template's own stop token as `eos_token`. "
          "A folder with other special tokens can get other verdicts: certify the folder you train.\n")
    print("yes: holds for all probes. **no**: the probe named below shows it. –: the template refuses the probe. "
          "Only `stop_token` and `generation_prompt` make rows wrong; `append_only` costs rows, and the others say what a prompt holds.\n")
    print("| template | " + " | ".join("`" + n + "`" for n in names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for name, verdicts in table:
        print(f"| {name} | " + " | ".join(SHORT.get(verdicts.get(n), "?") for n in names) + " |")
    print("\n| property | holds | fails | refuses the probe |\n|---|---|---|---|")
    for n in names:
        all_ = [v.get(n) for _, v in table]
        print(f"| `{n}` | {all_.count('holds')} | {all_.count('fails')} | {all_.count('n/a')} |")
    print("\n## What the probes showed\n")
    for n in names + [None]:
        mine = [(k, v) for k, v in notes.items() if (k[0] if isinstance(k, tuple) else None) == n]
        if not mine:
            continue
        print(f"`{n}`\n" if n else "Not loaded\n")
        for key, who in mine:
            detail = key[1] if isinstance(key, tuple) else key
            print(f"- {', '.join(who)}: {'`` ' + detail.replace(chr(10), ' ') + ' ``'}")
        print()


main(*sys.argv[1:])

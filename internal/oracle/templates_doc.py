"""Writes docs/templates.md: what `turnpack certify` says of every template at hand.

usage: templates_doc.py TURNPACK TEMPLATES TOKENIZER_JSON > docs/templates.md

Each template is put into a folder with the tokenizer, to which the control
tokens of all templates are added, as the families' own tokenizers have them.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from model_folder import ModelFolder, control_tokens

SHORT = {"holds": "yes", "fails": "**no**", "n/a": "–"}


def certify(turnpack, folder):
    p = subprocess.run([turnpack, "certify", "--model", folder, "--json"], capture_output=True, text=True)
    if not p.stdout:
        return None, p.stderr.strip().replace(folder, "the folder")
    return json.loads(p.stdout)["findings"], ""


def main(turnpack, templates, tokenizer):
    table, notes, names = [], {}, []
    sources = [(p.stem, p.read_bytes().decode()) for p in sorted(Path(templates).glob("*.jinja"))]
    with tempfile.TemporaryDirectory() as tmp:
        folder = ModelFolder(tmp, tokenizer, control_tokens(*(text for _, text in sources)))
        for stem, text in sources:
            folder.put(text)
            findings, refused = certify(turnpack, tmp)
            if findings is None:
                table.append((stem, {}))
                notes.setdefault("refused: " + refused[:150], []).append(stem)
                continue
            names = names or [f["property"] for f in findings]
            table.append((stem, {f["property"]: f["verdict"] for f in findings}))
            for f in findings:
                if (f["verdict"] != "holds" or f["property"] == "arguments") and f.get("detail"):
                    detail = f["detail"] if len(f["detail"]) <= 170 else f["detail"][:170] + "…"
                    notes.setdefault((f["property"], detail), []).append(stem)
    print("# Chat templates, certified\n")
    print(f"What `turnpack certify` says of the {len(table)} templates of the templates kit. `internal/oracle/templates_doc.py` writes this page; `make conformance` compares it.\n")
    print("Each template stands beside the Qwen3 tokenizer with the control tokens of all templates added to it, and with the template's own stop token as `eos_token`. "
          "A folder with other special tokens can get other verdicts: certify the folder you train.\n")
    print("yes: holds for all probes. **no**: the probe named below shows it. –: the template refuses the probe, or writes no calls. "
          "Only `stop_token` and, for merged and per-step rows, `generation_prompt` make rows wrong; `append_only` costs rows, and the others say what a prompt holds.\n")
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

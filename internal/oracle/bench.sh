#!/bin/sh
# Runs the measurements that have a named peer, each pair in one run, and prints
# their ratios. What a machine lacks is skipped by name.
#
#   TURNPACK_PYTHON   use this Python instead of a virtual environment in the cache
#   TURNPACK_SEED_PYTHON   the same for the versions of requirements-seed.txt
#   SECONDS_EACH      seconds a Go benchmark runs (default 0.3)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
python=$(sh "$here/python.sh")
each=${SECONDS_EACH:-0.3}
export CGO_ENABLED=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
title() { printf '\n== %s\n' "$1"; }
has() { "$python" -c "import $1" 2>/dev/null || { echo "skipped: no Python package $1"; return 1; }; }

go version
uptime

title "rollouts to batches: turnpack against transformers and pyarrow"
dumps=../shared/data/trajectories/mini-swe-agent
if [ -d "$dumps" ] && has transformers && has pyarrow; then
  mkdir "$tmp/qwen3"
  zstd -dqf ../shared/conformance/tokenizers/qwen3.tokenizer.json.zst -o "$tmp/qwen3/tokenizer.json"
  cp ../shared/conformance/tokenizers/qwen3.tokenizer_config.json "$tmp/qwen3/tokenizer_config.json"
  "$python" "$here/bench_convert.py" "$tmp/qwen3" "$dumps" 5
else
  echo "skipped: the recorded dumps are not beside the checkout"
fi

title "dynamic history: one row per step, against the reference's path with fastokens"
if [ -s "$tmp/qwen3/tokenizer.json" ]; then
  go test -c -o "$tmp/root.test" .
  for _ in 1 2 3; do "$tmp/root.test" -test.run '^$' -test.bench PerStep -test.benchtime "${each}s" >>"$tmp/steps.txt"; done
  "$(sh "$here/python.sh" seed)" "$here/bench_encode.py" ../shared "$tmp/qwen3" "$tmp/steps.txt"
fi

title "encoding new text: the bpe engine against fastokens and tokenizers"
if [ -s "$tmp/qwen3/tokenizer.json" ] && has fastokens && has tokenizers; then
  go test -c -o "$tmp/bpe.test" ./tokenize/bpe
  "$python" "$here/bench_bpe.py" "$tmp/corpus" "$tmp/qwen3/tokenizer.json" "$tmp/bpe.test"
  go test ./tokenize/bpe -run "^$" -bench NewTextWorkers -benchtime 1x -count 3 | grep -e Benchmark
fi

title "chat templates: rendering against jinja2, and with encoding"
if [ -d ../shared/conformance ] && has jinja2; then
  templates=${XDG_CACHE_HOME:-$HOME/.cache}/turnpack/templates-kit
  sh "$here/templates.sh" >/dev/null
  sh "$here/tokenizers.sh" >/dev/null
  GOMAXPROCS=1 GOGC=400 go test ./tokenize/chat -run '^$' -bench Render -benchtime 30x -count 3 | grep -e Benchmark -e '^cpu' | tee "$tmp/render.txt"
  "$python" "$here/bench_chat.py" "$templates" "$tmp/render.txt"
  GOMAXPROCS=1 GOGC=400 go test ./tokenize -run '^$' -bench EncodeWhole -benchtime 1x | grep -e Benchmark
else
  echo "skipped: the kits are not beside the checkout"
fi

title "Parquet: the writer against bare arrow/go, then pyarrow on the same rows"
GOMAXPROCS=1 go test ./export -run '^$' -bench 'Write|Bare|Read' -benchtime "${each}s" | grep -e Benchmark -e '^cpu'
if has pyarrow; then
  TURNPACK_BENCH_FILE="$tmp/rows.parquet" go test -count=1 ./export -run WriteBenchFile >/dev/null
  "$python" "$here/bench_parquet.py" "$tmp/rows.parquet"
fi

title "advantages: exact sums against plain ones"
GOMAXPROCS=1 go test ./reward -run '^$' -bench 'Streaming|PlainSums' -benchtime 1x | grep -e Benchmark -e '^cpu'

title "log grading and importing (figures of the peers: docs/bench)"
go test ./reward/swebench -run '^$' -bench Grade -benchtime "${each}s" | grep -e Benchmark
go test ./rollout/traj -run '^$' -bench Import -benchtime "${each}s" -cpu 1 | grep -e Benchmark

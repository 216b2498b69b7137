#!/bin/sh
# Runs every fuzz target of the module for the given time. If a target fails, prints the
# failing input; a plain go test fails with that input in the named file.
set -eu
time=${1:-5s}
grep -rlE --include='*_test.go' '^func Fuzz' . | grep -v '/internal/devtools/' | while read -r file; do
  dir=$(dirname "$file")
  case $dir in */tokenize/hf*) continue ;; esac
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
    out=$(CGO_ENABLED=0 go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10x "$dir" 2>&1) && continue
    echo "$out"
    for input in $(echo "$out" | sed -n 's/.*Failing input written to //p'); do
      echo "--- $dir/$input"
      cat "$dir/$input"
    done
    echo "fuzz target failed: $dir $target"
    exit 1
  done
done

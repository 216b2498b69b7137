#!/bin/sh
# Runs the race detector over the packages that start goroutines or share memory, by what
# their sources name; the others do not gain by it. tokenize/hf needs its static library.
set -eu
shares='\<go func\>|\<go [a-zA-Z.]+\(|errgroup|\<sync\.|\<atomic\.'
packages=$(git grep -lE "$shares" -- '*.go' ':!internal/lint' ':!internal/devtools' ':!tokenize/hf' ':!*/testdata' ':!examples/beam' |
  xargs -n 1 dirname | sort -u | sed 's,^,./,')
CGO_ENABLED=1 ${GO:-go} test -race -short -vet=off $packages

#!/bin/sh
# Runs the race detector over the packages that start goroutines or share memory, by what
# their sources name; the others do not gain by it: what a pool keeps is shared by goroutines
# of callers, which are among these. tokenize/hf needs its static library.
# Twice as many packages at once as there are processors: some wait.
set -eu
shares='\<go func\>|\<go [a-zA-Z.]+\(|errgroup|\<sync\.(Mutex|RWMutex|WaitGroup|Map|Cond)\>|"sync/atomic"'
packages=$(git grep -lE "$shares" -- '*.go' ':!internal/lint' ':!internal/devtools' ':!tokenize/hf' ':!*/testdata' ':!examples/beam' |
  xargs -n 1 dirname | sort -u | sed 's,^,./,')
CGO_ENABLED=1 ${GO:-go} test -race -short -vet=off -p $(($(getconf _NPROCESSORS_ONLN) * 2)) $packages

#!/bin/sh
# Runs the race detector over the packages whose sources start goroutines or share memory.
# Other packages need no run: objects in a pool are shared by goroutines of callers, which
# are among these. tokenize/hf is left out because it needs its static library.
# Two packages run per processor, because some tests wait.
set -eu
shares='\<go func\>|\<go [a-zA-Z.]+\(|errgroup|\<sync\.(Mutex|RWMutex|WaitGroup|Map|Cond)\>|"sync/atomic"'
packages=$(git grep -lE "$shares" -- '*.go' ':!internal/lint' ':!internal/devtools' ':!tokenize/hf' ':!*/testdata' ':!examples/beam' |
  xargs -n 1 dirname | sort -u | sed 's,^,./,')
CGO_ENABLED=1 ${GO:-go} test -race -short -vet=off -p $(($(getconf _NPROCESSORS_ONLN) * 2)) $packages

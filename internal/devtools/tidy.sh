#!/bin/sh
# Runs go mod tidy for every module of the workspace. The modules require each other at a
# version that may not be tagged yet, so each is replaced by its folder during the run.
# With -check it writes nothing, and fails if a go.mod is not tidy. It needs the module
# proxy, because tidy also reads the imports of dependencies' tests.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for module in . export/blobstore examples/turnpack; do
  cd "$root/$module"
  cp go.mod "$tmp/tidy.mod"
  cp go.sum "$tmp/tidy.sum"
  own='github.com/turnpack/turnpack'
  [ "$module" = . ] || GOWORK=off go mod edit -replace="$own=$root" -replace="$own/export/blobstore=$root/export/blobstore" "$tmp/tidy.mod"
  GOWORK=off GOFLAGS=-mod=mod go mod tidy -modfile="$tmp/tidy.mod"
  [ "$module" = . ] || GOWORK=off go mod edit -dropreplace="$own" -dropreplace="$own/export/blobstore" "$tmp/tidy.mod"
  if [ "${1:-}" = -check ]; then
    cmp -s go.mod "$tmp/tidy.mod" || { echo "$module/go.mod is not tidy: run make tidy"; diff go.mod "$tmp/tidy.mod"; exit 1; }
  else
    cp "$tmp/tidy.mod" go.mod
    cp "$tmp/tidy.sum" go.sum
  fi
done

#!/bin/sh
# Puts the template texts of the templates kit where the tests look for them.
# Nothing is fetched where all are there.
# usage: internal/oracle/templates.sh [FOLDER]   (default: the user cache folder)
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
kit="$root/../shared/conformance/templates"
dest=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/turnpack/templates-kit}
[ "$(find "$dest" -name '*.jinja' 2>/dev/null | wc -l)" -lt 72 ] || exit 0
version=$(sed -n 's/.*"version": "\([^"]*\)".*/\1/p' "$kit/templates.json" | head -1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip download -q --no-deps -d "$work" "trl==$version"
PUBLIC_TEMPLATES="$dest" python3 "$kit/obtain.py" "$work"/trl-*.whl

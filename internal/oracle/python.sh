#!/bin/sh
# Prints a Python that has the packages of requirements.txt: TURNPACK_PYTHON if
# that is set, else a virtual environment made once in the user cache folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -n "${TURNPACK_PYTHON:-}" ]; then
  echo "$TURNPACK_PYTHON"
  exit
fi
venv=${XDG_CACHE_HOME:-$HOME/.cache}/turnpack/venv
wanted=$here/requirements.txt
[ -z "${TURNPACK_TORCH:-}" ] || wanted="$wanted $here/requirements-torch.txt"
stamp=$(cat $wanted | cksum | cut -d' ' -f1)
if [ ! -e "$venv/stamp.$stamp" ]; then
  echo "python: installing the pinned packages into $venv" >&2
  python3 -m venv "$venv" >&2
  for r in $wanted; do "$venv/bin/python" -m pip install -q --disable-pip-version-check -r "$r" >&2; done
  rm -f "$venv"/stamp.*
  touch "$venv/stamp.$stamp"
fi
echo "$venv/bin/python"

#!/bin/sh
# Prints a Python that has the packages of requirements.txt: TURNPACK_PYTHON if
# that is set, else a virtual environment made once in the user cache folder.
# `python.sh seed` prints one with requirements-seed.txt, or TURNPACK_SEED_PYTHON, and
# `python.sh live` one with requirements-live.txt, or TURNPACK_LIVE_PYTHON, and
# `python.sh learn` one with those of examples/learn, or TURNPACK_LEARN_PYTHON.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
given=${TURNPACK_PYTHON:-}
venv=${XDG_CACHE_HOME:-$HOME/.cache}/turnpack/venv
wanted=$here/requirements.txt
[ -z "${TURNPACK_TORCH:-}" ] || wanted="$wanted $here/requirements-torch.txt"
if [ "${1:-}" = seed ]; then
  given=${TURNPACK_SEED_PYTHON:-}
  venv=$venv-seed
  wanted=$here/requirements-seed.txt
fi
if [ "${1:-}" = live ]; then
  given=${TURNPACK_LIVE_PYTHON:-}
  wanted=$here/requirements-live.txt
  venv=$venv-live
fi
if [ "${1:-}" = learn ]; then
  given=${TURNPACK_LEARN_PYTHON:-}
  wanted=$here/../../examples/learn/requirements.txt
  venv=$venv-learn
fi
if [ -n "$given" ]; then
  echo "$given"
  exit
fi
stamp=$(cat $wanted | cksum | cut -d' ' -f1)
if [ ! -e "$venv/stamp.$stamp" ]; then
  echo "python: installing the pinned packages into $venv" >&2
  python3 -m venv "$venv" >&2
  for r in $wanted; do "$venv/bin/python" -m pip install -q --disable-pip-version-check -r "$r" >&2; done
  rm -f "$venv"/stamp.*
  touch "$venv/stamp.$stamp"
fi
echo "$venv/bin/python"

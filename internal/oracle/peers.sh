#!/bin/sh
# Installs the packages of requirements-peers.txt into a folder, once, without what
# they depend on and whatever Python they ask for: only single functions of them are run.
#
# usage: peers.sh PYTHON FOLDER
set -eu
wanted=$(cd "$(dirname "$0")" && pwd)/requirements-peers.txt
stamp=$2/stamp.$(cksum <"$wanted" | cut -d' ' -f1)
[ ! -e "$stamp" ] || exit 0
echo "peers: installing the pinned packages into $2" >&2
rm -rf "$2"
"$1" -m pip install -q --disable-pip-version-check --no-deps --ignore-requires-python --target "$2" -r "$wanted" >&2
touch "$stamp"

#!/bin/sh
# Compares bin/turnpack and bin/plumb with the real systems: every kit beside the checkout, the
# kits' goldens made again by the pinned packages, and files read by other readers.
# One line a step; exit status 1 on any difference.
#
# A million random texts for each of fifteen tokenizers take most of the time: on
# two cores 2 to 5 minutes each and 49 in all beside light work, with a line of
# progress every few seconds. All else takes about 10 minutes.
#
#   TURNPACK_TEXTS     random texts for each tokenizer; 2000 for a quick pass
#   TURNPACK_PYTHON    use this Python instead of a virtual environment in the cache
#   TURNPACK_TORCH=1   also what needs torch and trl
#   TURNPACK_NEMO_RL   a checkout of NVIDIA-NeMo/RL at 7ea279ab, for its recipes; in the same way
#   TURNPACK_PRIME_RL, TURNPACK_SLIME, TURNPACK_TRL (PrimeIntellect-ai/prime-rl at 559b4477,
#                      THUDM/slime at 624b824a, huggingface/trl at f2cd5771)
#   TURNPACK_NEMO_GYM  a checkout of NVIDIA-NeMo/Gym at 07d6b0d0, for the recipe of single steps
#   TURNPACK_OPENCLAW  a checkout of Gen-Verse/OpenClaw-RL at 0d034dd, for its recipes, sandboxes and agent loop
#   TURNPACK_ONLY      run only the steps whose names contain this
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
python=$(sh "$here/python.sh")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/turnpack
if [ -d ../shared/conformance ]; then
  sh "$here/peers.sh" "$python" "$cache/peers"
  sh "$here/templates.sh" >/dev/null
  sh "$here/tokenizers.sh" >/dev/null
fi
exec "$python" "$here/conformance.py" bin/turnpack bin/plumb ../shared "$cache"

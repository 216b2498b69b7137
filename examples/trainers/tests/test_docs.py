"""What docs/format.md says of trainers against their sources: checkouts named by TURNPACK_SLIME, TURNPACK_NEMO_RL and so on, work trees or
bare clones that have the commit."""
import os
import re
import subprocess
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs" / "format.md"
SAID = re.findall(r"^\| ([\w-]+)@([0-9a-f]{7,9}) \| (\S+) \| `(.+)` \| .+ \|$", DOCS.read_text(), re.M)


def test_the_table_is_read():
    """Each trainer of the targets has a line."""
    assert {name for name, *_ in SAID} == {"slime", "OpenClaw-RL", "verl", "SkyRL", "prime-rl", "trl", "AReaL", "NeMo-RL", "Megatron-Bridge"}
    assert len(SAID) == len([line for line in DOCS.read_text().splitlines() if re.match(r"\| [\w-]+@[0-9a-f]{7}", line)])


@pytest.mark.parametrize("name, commit, file, text", SAID, ids=lambda v: v.rsplit("/", 1)[-1][:40])
def test_a_trainer_says_so(name, commit, file, text):
    variable = "TURNPACK_" + name.upper().replace("-", "_")
    folder = os.environ.get(variable)
    if not folder:
        pytest.skip(f"SKIPPED: set {variable} to a checkout of {name}")
    shown = subprocess.run(["git", "-C", folder, "show", f"{commit}:{file}"], capture_output=True, text=True)
    source = shown.stdout if shown.returncode == 0 else Path(folder, file).read_text()
    assert text in source, f"{name} no longer has {text!r} in {file}"

"""Writes the fixture rollout/traj/testdata/slime.pt: python slime_fixture.py FILE

The file is laid out as torch.save lays out slime's debug rollout data, a zip archive with
one pickle of protocol 2; the samples are made up.
"""

import io
import pickle
import sys
import zipfile


class Tensor:
    """Stands for an object of a class, which no reader makes."""


def sample(index, **more):
    out = {
        "group_index": 4, "index": index, "rollout_id": None, "prompt": [{"role": "user", "content": "q"}], "tokens": [1, 2, 3, 4, 5], "multimodal_inputs": None,
        "apply_chat_template_kwargs": {"enable_thinking": False}, "response": "ab", "response_length": 3, "label": "x", "reward": 1.0, "loss_mask": None,
        "weight_versions": ["7"], "rollout_log_probs": [-0.1, -0.2, -0.3], "remove_sample": False, "status": "completed", "metadata": {"instance_id": "i"},
        "rollout_routed_experts": Tensor(), "non_generation_time": 0.5,
    }
    return out | more


samples = [
    sample(8),
    sample(9, loss_mask=[1, 0, 1], weight_versions=["7", "8"], reward={"score": -1.0}, status="truncated", group_index=5, prompt="<|im_start|>user\nq"),
    sample(10, tokens=[1, 2], response_length=3),
]
data = io.BytesIO()
pickle.dump({"rollout_id": 2, "samples": samples}, data, protocol=2)
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr(zipfile.ZipInfo("2/data.pkl"), data.getvalue())
    z.writestr(zipfile.ZipInfo("2/version"), "3\n")

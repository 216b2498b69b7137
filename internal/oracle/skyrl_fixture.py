"""Writes the fixture rollout/traj/testdata/skyrl.pkl: python skyrl_fixture.py FILE

The file is laid out as SkyRL's TrainingInputBatch.save lays out a dumped batch: a call of
_rebuild_tensor_batch with the bytes of numpy arrays; the numbers are made up.
"""

import array
import pickle
import sys
import types

name = "skyrl.backends.skyrl_train.training_batch"
module = types.ModuleType(name)
for part in ("skyrl", "skyrl.backends", "skyrl.backends.skyrl_train"):
    sys.modules[part] = types.ModuleType(part)
sys.modules[name] = module


class TrainingInputBatch(dict):
    def __reduce__(self):
        return (module._rebuild_tensor_batch, (TrainingInputBatch, self.state))


def _rebuild_tensor_batch(cls, state):
    return cls()


for x in (TrainingInputBatch, _rebuild_tensor_batch):
    x.__module__, x.__qualname__ = name, x.__name__
    setattr(module, x.__name__, x)


def tensor(kind, rows):
    flat = [v for row in rows for v in row]
    dtype = {"q": "int64", "f": "float32"}[kind]
    return {"format": "numpy", "data": array.array(kind, flat).tobytes(), "shape": (len(rows), len(rows[0])), "dtype": dtype}


batch = TrainingInputBatch()
batch.state = {
    "batch_dict": {
        "sequences": tensor("q", [[0, 1, 2, 3, 4, 5], [1, 2, 6, 7, 8, 9], [0, 0, 1, 2, 3, 4]]),
        "attention_mask": tensor("q", [[0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1]]),
        "response_mask": tensor("q", [[0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1]]),
        "loss_mask": tensor("f", [[0, 1, 1, 1], [1, 0, 1, 1], [0, 0, 0, 0]]),
        "rollout_logprobs": tensor("f", [[0, -0.5, -1, -2], [-1, 0, -2, -3], [0, 0, -1, -1]]),
        "pixel_values": None,
    },
    "batch_size": 3,
    "device": None,
    "metadata": {"response_length": 4},
}
with open(sys.argv[1], "wb") as f:
    pickle.dump(batch, f)

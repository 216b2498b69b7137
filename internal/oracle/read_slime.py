"""Loads a debug rollout file with torch and prints its samples as JSON; --save writes one with torch.save.

usage: read_slime.py FILE
       read_slime.py --save FILE
"""
import json
import sys

import torch

if sys.argv[1] == "--save":
    samples = [{"group_index": 0, "index": i, "rollout_id": 0, "prompt": "p", "tokens": list(range(5)), "response": "r", "response_length": 3, "reward": 0.25,
                "loss_mask": [1, 1, 0], "rollout_log_probs": [-0.5, -1.0, 0.0], "remove_sample": False, "status": "completed", "metadata": {"advantage": -0.5},
                "extra": torch.arange(3), "unused": None} for i in range(1203)]
    torch.save({"rollout_id": 7, "samples": samples}, sys.argv[2])
else:
    data = torch.load(sys.argv[1], weights_only=True)
    assert data == torch.load(sys.argv[1], weights_only=True, mmap=True)
    json.dump(data, sys.stdout)

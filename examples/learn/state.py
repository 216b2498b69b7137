"""What a trainer of this loop keeps: weights, optimizer and the number of the last batch, published together or not at all."""
import hashlib
import json
import os
import pathlib
import urllib.error
import urllib.request

import torch

LATEST = "state.json"


class Torn(Exception):
    """A checkpoint that is not what it says."""


def post(url, body):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"}), timeout=120) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as e:
        raise RuntimeError(f"{url}: {e.code} {e.read().decode(errors='replace')[:500]}") from e


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


class State:
    """A folder with one checkpoint. version is that of the policy, seq the last batch that it was trained on."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.version, self.seq, self.said = 0, 0, None

    def load(self, model, optimizer):
        """Goes on where a trainer stopped; False = from the start. What a killed step left is no part of it."""
        latest = self.folder / LATEST
        if latest.exists():
            self.said = json.loads(latest.read_text())
            for what, into in (("weights", model), ("optimizer", optimizer)):
                path = self.folder / self.said[what]
                if not path.exists() or digest(path) != self.said[what + "_sha256"]:
                    raise Torn(f"{path} is not the file that {latest} names ({'its digest differs' if path.exists() else 'it is gone'}): no step is made from it; "
                               "put the file back, or remove the folder to begin anew")
                into.load_state_dict(torch.load(path, weights_only=True))
            self.version, self.seq = self.said["version"], self.said["seq"]
        for path in self.folder.iterdir():
            if self.said is None or path.name not in (LATEST, self.said["weights"], self.said["optimizer"]):
                path.unlink()  # of a step that was not finished, or of the one before
        return self.said is not None

    def save(self, model, optimizer, seq, first=False):
        """A version more, and the batches up to seq trained on. state.json is the last to be written, by a rename."""
        version = 0 if first else self.version + 1
        said = {"version": version, "seq": seq}
        for what, part in (("weights", model), ("optimizer", optimizer)):
            path = self.folder / f"{what}-{version:06}.pt"
            with open(path, "wb") as f:
                torch.save(part.state_dict(), f)
                f.flush()
                os.fsync(f.fileno())
            said |= {what: path.name, what + "_sha256": digest(path)}
        with open(self.folder / "state.json.tmp", "w") as f:
            json.dump(said, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(self.folder / "state.json.tmp", self.folder / LATEST)
        if self.said is not None:
            for what in ("weights", "optimizer"):
                if self.said[what] != said[what]:
                    (self.folder / self.said[what]).unlink(missing_ok=True)
        self.said, self.version, self.seq = said, version, seq

    def publish(self, engine, service):
        """The weights to the engine, and their version to the service, which knows then how old tokens are."""
        post(f"{engine}/update_weights", {"path": str((self.folder / self.said["weights"]).absolute()), "sha256": self.said["weights_sha256"], "version": self.version})
        post(f"{service}/version", {"version": self.version})

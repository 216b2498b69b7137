"""An inference engine of vLLM's shape for a tiny model on the CPU: engine.py FOLDER prints "listening on ADDR".

Completions take ids, chat completions render messages with the folder's template; replies have token ids and log
probabilities. Requests that wait are sampled as one batch. It has no weights until POST /update_weights gives them:
{"path": FILE, "sha256": DIGEST, "version": N}. With "seed" a reply does not depend on what else is in its batch.
"""
import contextlib
import hashlib
import json
import pathlib
import queue
import random
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.S)


class Refused(Exception):
    """A status, and the reason why a request is answered with it."""


class Engine:
    def __init__(self, folder):
        torch.set_num_threads(1)
        self.tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)  # AutoTokenizer takes the one of the model type, whatever tokenizer.json says
        self.model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)).eval()
        self.version, self.waiting, self.lock = None, queue.Queue(), threading.Lock()
        threading.Thread(target=self.work, daemon=True).start()

    def load(self, path, sha256, version):
        """New weights between two batches. What is not whole, or of another shape, changes nothing."""
        if (found := hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()) != sha256:
            raise Refused(409, f"the weights of version {version} have the digest {found[:12]}, expected {sha256[:12]}: the file is half-written or another one")
        with self.lock:
            try:
                self.model.load_state_dict(torch.load(path, weights_only=True))
            except RuntimeError as e:
                raise Refused(409, f"the weights of version {version} are of another model or vocabulary: {str(e)[:300]}") from e
            self.version = version

    def work(self):
        while True:
            batch, error = [self.waiting.get()], None
            with contextlib.suppress(queue.Empty):
                while len(batch) < 256:  # those that come together are one batch
                    batch.append(self.waiting.get(timeout=0.01))
            try:
                with self.lock:
                    self.sample(batch)
            except Exception as e:  # told to those that wait
                error = e
            for r in batch:
                r["error"] = error
                r["done"].set()

    @torch.inference_mode()
    def sample(self, batch):
        """Prompts padded on the left, one token a step for all, with a cache of keys and values."""
        width = max(len(r["prompt"]) for r in batch)
        ids = torch.tensor([[0] * (width - len(r["prompt"])) + r["prompt"] for r in batch])
        mask = torch.tensor([[0] * (width - len(r["prompt"])) + [1] * len(r["prompt"]) for r in batch])
        heat = torch.tensor([[r["temperature"]] for r in batch])
        dice = [random.Random(r["seed"]) for r in batch]
        places, cache, end = (mask.cumsum(-1) - 1).clamp(min=0), None, self.tokenizer.eos_token_id
        for r in batch:
            r.update(ids=[], logprobs=[], finish="length", version=self.version)
        while any(going := [r["finish"] == "length" and len(r["ids"]) < r["max"] for r in batch]):
            out = self.model(input_ids=ids, attention_mask=mask, position_ids=places, past_key_values=cache, use_cache=True)
            cache, logp = out.past_key_values, (out.logits[:, -1].double() / heat).log_softmax(-1)
            ids = (logp.exp().cumsum(-1) < torch.tensor([[d.random()] for d in dice], dtype=torch.double)).sum(-1, keepdim=True).clamp(max=logp.shape[-1] - 1)
            for r, goes, token, value in zip(batch, going, ids[:, 0].tolist(), logp.gather(1, ids)[:, 0].tolist()):
                if goes:
                    r["ids"].append(token)
                    r["logprobs"].append(min(value, 0.0))
                    r["finish"] = "stop" if token == end else "length"
            places, mask = places[:, -1:] + 1, torch.cat([mask, mask.new_ones(len(batch), 1)], 1)

    def prompt(self, q):
        """The ids of a request."""
        if "messages" not in q:
            return q["prompt"] if isinstance(q["prompt"], list) else self.tokenizer.encode(q["prompt"], add_special_tokens=False)
        for call in (call for m in q["messages"] for call in m.get("tool_calls") or []):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        return self.tokenizer.encode(self.tokenizer.apply_chat_template(q["messages"], add_generation_prompt=True, tokenize=False), add_special_tokens=False)

    def reply(self, q, chat):
        if self.version is None:
            raise Refused(503, "no weights were loaded yet")
        prompt = self.prompt(q)
        if beyond := [t for t in prompt if not 0 <= t < self.model.config.vocab_size]:
            raise Refused(400, f"id {beyond[0]} is none of the {self.model.config.vocab_size} of this model: the prompt was made with another vocabulary")
        r = {"prompt": prompt, "max": q.get("max_tokens") or 16, "temperature": float(q.get("temperature") or 1.0), "seed": q.get("seed"), "done": threading.Event()}
        self.waiting.put(r)
        r["done"].wait()
        if r["error"]:
            raise r["error"]
        ids, values = r["ids"], r["logprobs"]
        text = self.tokenizer.decode(ids[:-1] if r["finish"] == "stop" else ids, skip_special_tokens=False)
        choice = {"index": 0, "finish_reason": r["finish"], "token_ids": ids}
        if chat:
            calls = [json.loads(c) for c in CALL.findall(text)]
            choice["delta" if q.get("stream") else "message"] = {"role": "assistant", "content": CALL.sub("", text), "tool_calls": [
                {"index": i, "id": f"call_{random.randrange(1 << 60):x}", "type": "function", "function": {"name": c["name"], "arguments": json.dumps(c["arguments"])}} for i, c in enumerate(calls)]}
            choice["logprobs"] = {"content": [{"token": f"token_id:{t}", "logprob": v} for t, v in zip(ids, values)]}
        else:
            choice |= {"text": text, "prompt_token_ids": r["prompt"], "logprobs": {"token_logprobs": values, "tokens": [f"token_id:{t}" for t in ids]}}
        return {"id": "cmpl", "object": "chat.completion" if chat else "text_completion", "created": 1, "model": "learn", "choices": [choice], "weight_version": str(r["version"]),
                "prompt_token_ids": r["prompt"], "usage": {"prompt_tokens": len(r["prompt"]), "completion_tokens": len(ids), "total_tokens": len(r["prompt"]) + len(ids)}}


class Handler(BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm, wbufsize, log_message = "HTTP/1.1", True, -1, lambda *_: None

    def answer(self, status, body, stream=False):
        text = json.dumps(body).encode()
        if stream:  # all of it in one event
            text = b"data: " + text + b"\n\ndata: [DONE]\n\n"
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.answer(200, {"version": "learn", "object": "list", "data": [{"id": "learn", "object": "model"}]})

    def do_POST(self):
        e = self.server.engine
        try:
            q = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/update_weights":
                self.answer(200, e.load(q["path"], q["sha256"], q["version"]))
            elif self.path == "/tokenize":
                self.answer(200, {"tokens": e.prompt(q)})
            else:
                self.answer(200, e.reply(q, self.path == "/v1/chat/completions"), q.get("stream"))
        except Refused as err:
            self.answer(err.args[0], {"error": {"message": err.args[1], "code": err.args[0]}})
        except (KeyError, ValueError, TypeError, OSError) as err:
            self.answer(400, {"error": {"message": f"{type(err).__name__}: {err}", "code": 400}})


if __name__ == "__main__":
    ThreadingHTTPServer.request_queue_size = 256
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.engine = Engine(sys.argv[1])
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()

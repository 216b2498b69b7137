"""An inference engine of vLLM's shape for a model of a few hundred thousand parameters, on the CPU.

    engine.py --model FOLDER        prints "listening on ADDR"

Completions take ids, chat completions render messages with the folder's template; replies have token ids and log
probabilities. Requests that wait are sampled as one batch. It has no weights until POST /update_weights gives them:
{"path": FILE, "sha256": DIGEST, "version": N}. With "seed" a reply does not depend on what else is in its batch.
"""
import argparse
import hashlib
import json
import queue
import random
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.S)


class Refused(Exception):
    """A request that is answered with a status and a reason."""

    def __init__(self, status, reason):
        super().__init__(reason)
        self.status = status


class Engine:
    def __init__(self, folder):
        torch.set_num_threads(1)
        self.tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)  # AutoTokenizer takes the one of the model type, whatever tokenizer.json says
        self.model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)).eval()
        self.version, self.waiting, self.lock = None, queue.Queue(), threading.Lock()
        self.tokens, self.seconds = 0, 0.0
        threading.Thread(target=self.work, daemon=True).start()

    def load(self, path, sha256, version):
        """New weights between two batches. What is not whole, or of another shape, changes nothing."""
        try:
            with open(path, "rb") as f:
                found = hashlib.sha256(f.read()).hexdigest()
        except OSError as e:
            raise Refused(400, f"the weights of version {version}: {e}") from e
        if found != sha256:
            raise Refused(409, f"the weights of version {version} have the digest {found[:12]}, expected {sha256[:12]}: the file is half-written or another one")
        with self.lock:
            try:
                self.model.load_state_dict(torch.load(path, weights_only=True))
            except RuntimeError as e:
                raise Refused(409, f"the weights of version {version} are of another model or vocabulary: {str(e)[:300]}") from e
            self.version = version

    def work(self):
        while True:
            batch = [self.waiting.get()]
            time.sleep(0.002)  # those that come together are one batch
            while not self.waiting.empty() and len(batch) < 256:
                batch.append(self.waiting.get())
            try:
                with self.lock:
                    begun = time.process_time()
                    self.sample(batch)
                    self.seconds += time.process_time() - begun
                    self.tokens += sum(len(r["ids"]) for r in batch)
            except Exception as e:  # told to those that wait
                for r in batch:
                    r["error"] = e
            for r in batch:
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
        open_ = list(range(len(batch)))
        for step in range(max(r["max"] for r in batch)):
            out = self.model(input_ids=ids, attention_mask=mask, position_ids=places, past_key_values=cache, use_cache=True)
            cache, logp = out.past_key_values, (out.logits[:, -1].double() / heat).log_softmax(-1)
            drawn = torch.tensor([[d.random()] for d in dice], dtype=torch.double)
            chosen = (logp.exp().cumsum(-1) < drawn).sum(-1, keepdim=True).clamp(max=logp.shape[-1] - 1)
            tokens, values = chosen[:, 0].tolist(), logp.gather(1, chosen)[:, 0].tolist()
            for i in open_:
                r = batch[i]
                r["ids"].append(tokens[i])
                r["logprobs"].append(min(values[i], 0.0))
                if tokens[i] == end:
                    r["finish"] = "stop"
            open_ = [i for i in open_ if batch[i]["finish"] != "stop" and len(batch[i]["ids"]) < batch[i]["max"]]
            if not open_:
                return
            ids, places = chosen, places[:, -1:] + 1
            mask = torch.cat([mask, mask.new_ones(len(batch), 1)], 1)

    def prompt(self, q):
        """The ids of a request."""
        if "messages" in q:
            for m in q["messages"]:
                for call in m.get("tool_calls") or []:
                    call["function"]["arguments"] = json.loads(call["function"]["arguments"])
            text = self.tokenizer.apply_chat_template(q["messages"], tools=q.get("tools"), add_generation_prompt=q.get("add_generation_prompt", True), tokenize=False)
            return self.tokenizer.encode(text, add_special_tokens=False)
        return q["prompt"] if isinstance(q["prompt"], list) else self.tokenizer.encode(q["prompt"], add_special_tokens=False)

    def complete(self, q):
        prompt = self.prompt(q)
        beyond = [t for t in prompt if not 0 <= t < self.model.config.vocab_size]
        if not prompt or beyond:
            raise Refused(400, f"id {beyond[0]} is none of the {self.model.config.vocab_size} of this model: the prompt was made with another vocabulary" if beyond else "the prompt is empty")
        if self.version is None:
            raise Refused(503, "no weights were loaded yet")
        temperature = 1.0 if q.get("temperature") is None else float(q["temperature"])
        if temperature <= 0:
            raise Refused(400, f"temperature is {temperature}, this engine samples at temperatures over 0")
        r = {"prompt": prompt, "max": q.get("max_tokens") or 16, "temperature": temperature, "seed": q.get("seed"), "done": threading.Event()}
        self.waiting.put(r)
        r["done"].wait()
        if "error" in r:
            raise r["error"]
        return r

    def reply(self, q, chat):
        r = self.complete(q)
        ids, finish = r["ids"], r["finish"]
        text = self.tokenizer.decode(ids[:-1] if finish == "stop" else ids, skip_special_tokens=False)
        values = r["logprobs"]
        choice = {"index": 0, "finish_reason": finish, "token_ids": ids}
        if chat:
            head, mark, rest = text.partition("</think>")
            thinks = self.tokenizer.decode(r["prompt"][-1:], skip_special_tokens=False) == "<think>"
            reasoning, text = (head, rest) if thinks else (None, text)
            calls = [json.loads(c) for c in CALL.findall(text)]
            choice["message"] = {"role": "assistant", "content": CALL.sub("", text), "reasoning": reasoning, "tool_calls": [
                {"id": f"call_{random.randrange(1 << 60):x}", "type": "function", "function": {"name": c["name"], "arguments": json.dumps(c["arguments"])}} for c in calls]}
            choice["logprobs"] = {"content": [{"token": f"token_id:{t}", "logprob": v} for t, v in zip(ids, values)]}
        else:
            choice |= {"text": text, "prompt_token_ids": r["prompt"], "logprobs": {"token_logprobs": values, "tokens": [f"token_id:{t}" for t in ids]}}
        return {"id": "cmpl", "object": "chat.completion" if chat else "text_completion", "created": 1, "model": "learn", "choices": [choice], "weight_version": str(r["version"]),
                "prompt_token_ids": r["prompt"], "usage": {"prompt_tokens": len(r["prompt"]), "completion_tokens": len(ids), "total_tokens": len(r["prompt"]) + len(ids)}}


class Handler(BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm, wbufsize = "HTTP/1.1", True, -1

    def log_message(self, *args):
        pass

    def answer(self, status, body, stream=False):
        """A reply, or a stream with all of it in one event."""
        text = json.dumps(body).encode()
        if stream:
            for choice in body["choices"]:
                choice["delta"] = choice.pop("message", None)
                for i, call in enumerate((choice["delta"] or {}).get("tool_calls", ())):
                    call["index"] = i
            text = b"data: " + json.dumps(body).encode() + b"\n\ndata: [DONE]\n\n"
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        e = self.server.engine
        known = {"/health": {}, "/version": {"version": "learn"}, "/v1/models": {"object": "list", "data": [{"id": "learn", "object": "model"}]},
                 "/stats": {"tokens": e.tokens, "seconds": e.seconds, "version": e.version}}
        self.answer(200 if self.path in known else 404, known.get(self.path, {"error": {"message": "unknown"}}))

    def do_POST(self):
        e = self.server.engine
        try:
            q = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/update_weights":
                e.load(q["path"], q["sha256"], q["version"])
                self.answer(200, {"version": e.version})
            elif self.path == "/tokenize":
                ids = e.prompt(q)
                self.answer(200, {"tokens": ids, "count": len(ids)})
            elif self.path in ("/v1/completions", "/v1/chat/completions"):
                self.answer(200, e.reply(q, "chat" in self.path), q.get("stream"))
            else:
                raise Refused(404, "unknown")
        except Refused as err:
            self.answer(err.status, {"error": {"message": str(err), "code": err.status}})
        except (KeyError, ValueError, TypeError) as err:
            self.answer(400, {"error": {"message": f"{type(err).__name__}: {err}", "code": 400}})


class Server(ThreadingHTTPServer):
    request_queue_size, daemon_threads = 256, True


if __name__ == "__main__":
    flags = argparse.ArgumentParser()
    flags.add_argument("--model", required=True)
    server = Server(("127.0.0.1", 0), Handler)
    server.engine = Engine(flags.parse_args().model)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()

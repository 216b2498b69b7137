"""Dynamic history with transformers and a fast tokenizer: the peer of BenchmarkPerStep.

usage: python bench_encode.py SHARED MODEL_DIR

SHARED holds conformance/, MODEL_DIR a Qwen3 tokenizer.json and tokenizer_config.json.
Per step: the chat template on the context with the generation prompt, tokenised once,
then the reply's own tokens and the stop token with loss mask 1. Best of 5.
"""
import gzip, json, sys, time
from transformers import AutoTokenizer

shared, model = sys.argv[1:]
tok = AutoTokenizer.from_pretrained(model)
stop = tok.convert_tokens_to_ids("<|im_end|>")
task, replies, outputs = [None, None], [], []
for line in gzip.open(shared + "/conformance/seed_parity/seed_parity.jsonl.gz", "rt"):
    case = json.loads(line)
    if case["flavour"] not in ("plain", "context", "context_small", "unicode", "truncate"):
        continue
    for i, m in enumerate(case["messages"]):
        if i < 2:
            task[i] = m["content"]
        else:
            (replies if m["role"] == "assistant" else outputs).append(m["content"])


def text(texts, step, n):
    return "\n".join([f"Step {step}."] + [texts[(step * n + k) % len(texts)] for k in range(n)])


def trajectory(steps):
    messages = [{"role": "system", "content": task[0]}, {"role": "user", "content": task[1]}]
    for k in range(steps):
        messages.append({"role": "assistant", "content": text(replies, k, 2)})
        messages.append({"role": "user", "content": text(outputs, k, 5)})
    return messages


def per_step(messages, steps):
    rows = 0
    for k in range(steps):
        prompt = tok.apply_chat_template(messages[: 2 + 2 * k], add_generation_prompt=True, tokenize=False)
        ids = tok(prompt, add_special_tokens=False)["input_ids"]
        reply = tok(messages[2 + 2 * k]["content"], add_special_tokens=False)["input_ids"] + [stop]
        tokens, mask = ids + reply, [0] * len(ids) + [1] * len(reply)
        rows += len(tokens)
        assert len(mask) == len(tokens)
    return rows


for steps in (5, 20, 50):
    messages, best = trajectory(steps), 1e9
    for _ in range(5):
        start = time.perf_counter()
        emitted = per_step(messages, steps)
        best = min(best, time.perf_counter() - start)
    print(f"{steps:4d} steps {emitted:9d} tokens {best * 1e3:9.1f} ms", flush=True)

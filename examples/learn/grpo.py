"""The step of GRPO on rows of turnpack: ids, mask, advantages and the log probabilities of the policy that sampled."""
import torch


def pad(rows, of, fill=0.0):
    width = max(len(r["input_ids"]) for r in rows)
    kind = torch.long if of == "input_ids" else torch.float32
    out = torch.full((len(rows), width), fill, dtype=kind)
    for line, row in zip(out, rows):
        line[:len(row[of])] = torch.tensor(row[of], dtype=kind)
    return out


def logprobs(model, ids, temperature=1.0):
    """The log probability of each token after those before it; the first has none, and 0 stands for it."""
    return both(model, ids, temperature)[0]


def both(model, ids, temperature=1.0):
    """Log probabilities, and the entropy of what each token was drawn from."""
    spread = (model(input_ids=ids).logits[:, :-1] / temperature).log_softmax(-1)
    first = spread.new_zeros(len(ids), 1)
    return torch.cat([first, spread.gather(2, ids[:, 1:, None])[..., 0]], 1), torch.cat([first, -(spread.exp() * spread).sum(-1)], 1)


def drift(mine, recorded, mask):
    """How far the trainer's log probabilities are from those recorded, over trained tokens, before the weights change."""
    off = (mine - recorded).abs()[mask > 0]
    return {"drift": off.mean().item(), "beyond": (off > 1e-3).float().mean().item(), "largest": off.max().item()}


def step(model, optimizer, rows, epochs=2, low=0.2, high=0.28, clip=1.0, entropy=0.0, recompute=False):
    """One batch: the clipped loss over all trained tokens. entropy keeps the policy open, recompute takes the trainer's own log probabilities as the old ones."""
    ids, mask, advantages, recorded = (pad(rows, c) for c in ("input_ids", "loss_mask", "advantages", "logprobs"))
    with torch.no_grad():
        mine = logprobs(model, ids, rows[0]["temperature"])
    told = drift(mine, recorded, mask)
    old = mine if recompute else recorded
    keep = (advantages != 0).any(1)  # groups in which all fared alike say nothing
    if not keep.any():
        return told | {"loss": 0.0, "norm": 0.0}
    ids, mask, advantages, old = ids[keep], mask[keep], advantages[keep], old[keep]
    for _ in range(epochs):
        now, spread = both(model, ids, rows[0]["temperature"])
        ratio = (now - old).exp()
        gain = torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)
        loss = -((gain + entropy * spread) * mask).sum() / mask.sum()
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        if not torch.isfinite(norm):
            raise FloatingPointError(f"the gradient is {norm.item()}: no step is made from this batch")
        optimizer.step()
    return told | {"loss": loss.item(), "norm": norm.item()}

package trainers

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// sequence holds all tokens of a rollout, which of them were sampled, and the log
// probabilities, nil or one per token.
type sequence struct {
	ids      []int32
	sampled  []bool
	logprobs []float32
	train    []float32 // the same under the policy being trained
}

// turns makes a turn of each run of sampled tokens.
func (s *sequence) turns(in *format.File, r *rollout.Rollout) {
	r.Turns = []rollout.Turn{}
	for i := 0; i < len(s.ids); {
		if !s.sampled[i] {
			i++
			continue
		}
		from := i
		for i < len(s.ids) && s.sampled[i] {
			i++
		}
		t := rollout.Turn{Message: -1, Step: len(r.Turns)}
		var lp []float32
		if s.logprobs != nil {
			lp = s.logprobs[from:i:i]
		}
		in.TakeIDs(&t, s.ids[:from:from], s.ids[from:i:i], lp)
		if s.train != nil && len(t.Output) > 0 {
			t.TrainLogprobs = s.train[from:i:i]
		}
		r.Turns = append(r.Turns, t)
	}
	if len(r.Turns) == 0 {
		in.Wrong(in.Fail(0, "/mask", "no token of the sequence was sampled"))
	}
}

// group returns a name for the prompt of a sequence, equal for all sequences of a group.
func (s *sequence) group() string {
	h := sha256.New()
	var b [4]byte
	for i, id := range s.ids {
		if s.sampled[i] {
			break
		}
		binary.LittleEndian.PutUint32(b[:], uint32(id))
		h.Write(b[:])
	}
	return "prompt-" + hex.EncodeToString(h.Sum(nil)[:8])
}

// read reads a sequence from lists, the first n tokens of it (all if n < 0). Mask entries
// equal to masked mean not sampled.
func read(in *format.File, ids, mask, logprobs format.Value, fields [3]string, masked float64, n int) (*sequence, error) {
	s := &sequence{}
	var bad format.Value
	var ok bool
	if s.ids, bad, ok = ids.AppendInt32(nil); !ok {
		return nil, in.Fail(0, "/"+fields[0], "found %.40s, expected ids of tokens", bad.Raw())
	}
	s.sampled = marks(mask, masked)
	if len(s.sampled) != len(s.ids) {
		return nil, in.Fail(0, "/"+fields[1], "found %d entries for %d tokens", len(s.sampled), len(s.ids))
	}
	if !logprobs.IsNull() {
		if s.logprobs, bad, ok = logprobs.AppendFloat32(nil); !ok {
			return nil, in.Fail(0, "/"+fields[2], "found %.40s, expected log probabilities", bad.Raw())
		}
		if len(s.logprobs) != len(s.ids) {
			return nil, in.Fail(0, "/"+fields[2], "found %d log probabilities for %d tokens", len(s.logprobs), len(s.ids))
		}
	}
	if n >= 0 && n < len(s.ids) {
		s.ids, s.sampled = s.ids[:n], s.sampled[:n]
		if s.logprobs != nil {
			s.logprobs = s.logprobs[:n]
		}
	}
	return s, nil
}

// marks returns which entries of a mask of numbers or booleans are not masked.
func marks(mask format.Value, masked float64) []bool {
	out := make([]bool, 0, mask.Len())
	for _, m := range mask.Items() {
		f, number := m.Float()
		out = append(out, number && f != masked || m.True())
	}
	return out
}

// one returns the only element of a list, or the value itself: batches of one are written
// as lists.
func one(v format.Value) format.Value {
	if v.Kind() == jsonscan.Array && v.Len() == 1 {
		return v.First()
	}
	return v
}

// NeMoRL reads train_data_step*.jsonl.
func NeMoRL() format.Importer {
	return format.Importer{Name: "nemo-rl", Match: isNeMoRL, Read: readNeMoRL, Stateless: true}
}

func isNeMoRL(v format.Value, _ *format.File) bool {
	return v.Get("token_ids").Kind() == jsonscan.Array && v.Get("token_loss_mask").Kind() == jsonscan.Array && v.Get("generation_logprobs").Kind() == jsonscan.Array
}

func readNeMoRL(in *format.File, v format.Value) error {
	n := -1
	if k, ok := one(v.Get("input_lengths")).Int(); ok {
		n = k // the rest is padding
	}
	s, err := read(in, one(v.Get("token_ids")), one(v.Get("token_loss_mask")), one(v.Get("generation_logprobs")), [3]string{"token_ids", "token_loss_mask", "generation_logprobs"}, 0, n)
	if err != nil {
		return err
	}
	s.train = trainLogprobs(in, one(v.Get("prev_logprobs")), s)
	r := &rollout.Rollout{Index: format.NoIndex, Group: s.group(), Outcome: rollout.Outcome{Reward: in.Reward(one(v.Get("rewards")))}}
	if f, ok := one(v.Get("sample_loss_mask")).Float(); ok && f == 0 {
		r.Failure, r.Status = &rollout.Failure{Reason: "masked_by_framework"}, rollout.StatusFailed
		in.Note("masked_by_framework", 0, "the framework dropped this sample (sample_loss_mask)")
	}
	s.turns(in, r)
	in.Leftover(r, v, "token_ids", "token_loss_mask", "generation_logprobs", "rewards", "prev_logprobs", "advantages", "content", "sample_loss_mask")
	return in.Emit(r)
}

// trainLogprobs returns the log probabilities under the policy being trained, nil if they
// were not computed: NeMo RL writes zeros then (force_on_policy_ratio).
func trainLogprobs(in *format.File, v format.Value, s *sequence) []float32 {
	if v.IsNull() {
		return nil
	}
	all, _, ok := v.AppendFloat32(nil)
	if !ok || len(all) < len(s.ids) {
		in.Note("train_logprobs", 0, "%d log probabilities under the policy that trained for %d tokens: they are not used", len(all), len(s.ids))
		return nil
	}
	computed := false
	for i, x := range all[:len(s.ids)] {
		switch {
		case !s.sampled[i] || x == 0:
		case x > 0 && x < 1e-3:
			all[i] = 0 // rounding
		case !(x <= 0 && x >= -math.MaxFloat32):
			in.Note("train_logprobs", 0, "the log probability %v of token %d under the policy that trained is none: they are not used", x, i)
			return nil
		}
		computed = computed || s.sampled[i] && x != 0
	}
	if !computed {
		return nil
	}
	return all[:len(s.ids)]
}

// PrimeRL reads token_exports/step_*/rank_*.jsonl.
func PrimeRL() format.Importer {
	return format.Importer{Name: "prime-rl", Match: isPrimeRL, Read: readPrimeRL, Stateless: true}
}

func isPrimeRL(v format.Value, _ *format.File) bool {
	return v.Get("token_ids").Kind() == jsonscan.Array && v.Get("loss_mask").Kind() == jsonscan.Array && v.Get("inference_logprobs").Kind() == jsonscan.Array
}

func readPrimeRL(in *format.File, v format.Value) error {
	s, err := read(in, v.Get("token_ids"), v.Get("loss_mask"), v.Get("inference_logprobs"), [3]string{"token_ids", "loss_mask", "inference_logprobs"}, 0, -1)
	if err != nil {
		return err
	}
	r := &rollout.Rollout{Index: format.NoIndex, Group: s.group()}
	s.turns(in, r)
	in.Note("reward_not_recorded", 0, "an export of tokens has advantages and no rewards")
	for _, key := range []string{"step", "rank", "env_name", "micro_step"} {
		format.KeepAny(&r.Metadata, key, v.Get(key))
	}
	return in.Emit(r)
}

// Atropos reads the groups of an environment.
func Atropos() format.Importer {
	return format.Importer{Name: "atropos", Match: isAtropos, Read: readAtropos, Stateless: true}
}

func isAtropos(v format.Value, _ *format.File) bool {
	return v.Get("tokens").Kind() == jsonscan.Array && v.Get("masks").Kind() == jsonscan.Array && v.Get("scores").Kind() == jsonscan.Array
}

func readAtropos(in *format.File, v format.Value) error {
	column := func(key string) []format.Value { return format.Elements(v.Get(key)) }
	tokens, masks, scores := column("tokens"), column("masks"), column("scores")
	if len(masks) != len(tokens) || len(scores) != len(tokens) {
		return in.Fail(0, "/masks", "%d sequences have %d masks and %d scores", len(tokens), len(masks), len(scores))
	}
	logprobs, messages := column("inference_logprobs"), column("messages")
	name := fmt.Sprintf("%s:%d", in.Name, in.Where.Line)
	for i := range tokens {
		lp, said := format.Value{}, format.Value{}
		if i < len(logprobs) {
			lp = logprobs[i]
		}
		if i < len(messages) {
			said = messages[i]
		}
		if err := in.Failed(readSequence(in, tokens[i], masks[i], lp, said, scores[i], name, i)); err != nil {
			return err
		}
	}
	return nil
}

// readSequence reads one sequence of a group. Masked entries are -100, others the token id.
func readSequence(in *format.File, ids, mask, logprobs, messages, score format.Value, group string, index int) error {
	s, err := read(in, ids, mask, logprobs, [3]string{"tokens", "masks", "inference_logprobs"}, -100, -1)
	if err != nil {
		return err
	}
	r := &rollout.Rollout{Index: index, Group: group, Outcome: rollout.Outcome{Reward: in.Reward(score)}}
	s.turns(in, r)
	withMessages(in, r, messages)
	in.NoteParts(r)
	return in.Emit(r)
}

// withMessages assigns messages to the turns if there is a reply for each.
func withMessages(in *format.File, r *rollout.Rollout, list format.Value) {
	if list.IsNull() || list.Len() == 0 {
		return
	}
	messages := in.ChatMessages(list, "/messages")
	format.MarkReplies(messages, rollout.SampledByPolicy)
	replies := format.TurnsOf(messages)
	first := len(replies) - len(r.Turns) // earlier replies were part of the prompt
	if first < 0 {
		in.Note("messages_left_out", 0, "%d messages of an assistant are recorded for %d runs of sampled tokens; the tokens count, and the messages were left in the dump", len(replies), len(r.Turns))
		return
	}
	for i := range replies {
		if k := replies[i].Message; i < first {
			messages[k].Sampled = rollout.SampledPrefilled
		} else {
			r.Turns[i-first].Message = k
		}
	}
	r.Messages = messages
}

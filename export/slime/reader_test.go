package slime

import (
	"fmt"
	"io"

	"github.com/turnpack/turnpack/internal/pickle"
	"github.com/turnpack/turnpack/rollout"
)

// Sample is one sample in slime's form. Fields missing in the file keep their zero value; a nil
// list means absent or None.
type Sample struct {
	GroupIndex, Index, RolloutID int
	Tokens                       []int32
	ResponseLength               int
	Reward                       float64
	HasReward                    bool
	LossMask                     []int32   // of the response
	Logprobs                     []float64 // of the response
	Status                       string
	RemoveSample                 bool
	Metadata                     map[string]any
}

// Read returns the step and the samples of a debug rollout file of size bytes.
func Read(r io.ReaderAt, size int64) (step int, samples []Sample, err error) {
	where := rollout.Where{}
	fail := func(format string, args ...any) (int, []Sample, error) {
		return 0, nil, rollout.Errorf(rollout.KindFormat, where, format, args...).WithFix("give a file written by torch.save with slime's debug rollout data")
	}
	v, _, err := pickle.Torch(r, size)
	if err != nil {
		return fail("%v", err)
	}
	top, ok := v.(map[any]any)
	if !ok {
		return fail("the file holds %s, expected a dictionary with \"samples\"", typeName(v))
	}
	list, ok := top["samples"].(*[]any)
	if !ok {
		return fail("\"samples\" is %s, expected a list", typeName(top["samples"]))
	}
	for i, item := range *list {
		m, ok := item.(map[any]any)
		if !ok {
			return fail("sample %d is %s, expected a dictionary", i, typeName(item))
		}
		s, err := sampleOf(m)
		if err != nil {
			return fail("sample %d: %v", i, err)
		}
		samples = append(samples, s)
	}
	id, _ := top["rollout_id"].(int64)
	return int(id), samples, nil
}

func sampleOf(m map[any]any) (s Sample, err error) {
	ints := func(key string) []int32 {
		l, ok := m[key].(*[]any)
		if !ok {
			if m[key] != nil && err == nil {
				err = fmt.Errorf("%s is %s, expected a list", key, typeName(m[key]))
			}
			return nil
		}
		out := make([]int32, len(*l))
		for i, v := range *l {
			n, ok := v.(int64)
			if b, isBool := v.(bool); isBool {
				ok = true
				if b {
					n = 1
				}
			}
			if (!ok || int64(int32(n)) != n) && err == nil {
				err = fmt.Errorf("%s[%d] is %s, expected a 32-bit integer", key, i, typeName(v))
			}
			out[i] = int32(n)
		}
		return out
	}
	number := func(v any) (float64, bool) {
		switch x := v.(type) {
		case float64:
			return x, true
		case int64:
			return float64(x), true
		}
		return 0, false
	}
	integer := func(key string) int {
		n, _ := m[key].(int64)
		return int(n)
	}
	s = Sample{GroupIndex: integer("group_index"), Index: integer("index"), RolloutID: integer("rollout_id"), ResponseLength: integer("response_length"),
		Tokens: ints("tokens"), LossMask: ints("loss_mask")}
	s.Reward, s.HasReward = number(m["reward"])
	s.Status, _ = m["status"].(string)
	s.RemoveSample, _ = m["remove_sample"].(bool)
	if l, ok := m["rollout_log_probs"].(*[]any); ok {
		s.Logprobs = make([]float64, len(*l))
		for i, v := range *l {
			x, ok := number(v)
			if !ok && err == nil {
				err = fmt.Errorf("rollout_log_probs[%d] is %s, expected a number", i, typeName(v))
			}
			s.Logprobs[i] = x
		}
	}
	if meta, ok := m["metadata"].(map[any]any); ok {
		s.Metadata = map[string]any{}
		for k, v := range meta {
			if key, ok := k.(string); ok {
				s.Metadata[key] = v
			}
		}
	}
	return s, err
}

func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case map[any]any:
		return "a dictionary"
	case *[]any:
		return "a list"
	case []any:
		return "a tuple"
	case string:
		return "text"
	case pickle.Object:
		return "an object of " + v.Class
	case int64:
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%T", v)
}

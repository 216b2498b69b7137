package pivot

import (
	"cmp"
	"math"
	"sort"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
)

// The categories of a Comparison, named as in the reference.
const (
	noActionFound         = "NO_ACTION_FOUND"
	noExpectedToolCall    = "NO_EXPECTED_TOOL_CALL"
	expectedMessageFound  = "EXPECTED_CHAT_MESSAGE_FOUND"
	noExpectedMessage     = "NO_EXPECTED_CHAT_MESSAGE"
	unexpectedTool        = "UNEXPECTED_TOOL"
	argumentsDecodeError  = "ARGUMENTS_DECODE_ERROR"
	argumentTypeDiffers   = "ARGUMENT_VALUE_TYPE_DIFFERENT"
	argumentKeysDiffer    = "ARGUMENT_OBJECT_KEYS_DIFFERENT"
	argumentLengthDiffers = "ARGUMENT_LIST_LENGTH_DIFFERENT"
	argumentValueDiffers  = "ARGUMENT_VALUE_DIFFERENT"
	matchedCall           = "EXPECTED_TOOL_CALL"
	batchLengthDiffers    = "FUNCTION_CALL_BATCH_LENGTH_DIFFERENT"
	expectedBatch         = "EXPECTED_TOOL_CALL_BATCH"
)

// Comparator compares actions by tool and arguments. The zero value is the configuration that Nemotron
// used for SWE pivots: any two strings of two or more words match, and extra calls are allowed.
type Comparator struct {
	// WordThreshold is the least |A∩B| / (|A|+|B|) at which two strings of at least two words match,
	// as bags of lower-case words. Equal strings reach 0.5, so a larger threshold rejects every such
	// string.
	WordThreshold float64 `json:"word_count_similarity_threshold"`
	// FloatTolerance is the exclusive bound on |a−b| for floats; 0 means 1e-6.
	FloatTolerance float64 `json:"floating_point_comparison_threshold"`
	// CountCalls makes the number of calls part of the verdict. The three fields below apply only if
	// it is set.
	CountCalls    bool `json:"parallel_tool_call_rewarding"`
	AllowSubset   bool `json:"allow_subset"`   // fewer calls than expected are admissible
	AllowSuperset bool `json:"allow_superset"` // more calls than expected are admissible
	// Mode selects the reward of matched calls: "binary_strict" or "", 1 when every required call
	// matched; "fractional", matched / required; "f1", 2·matched / (expected + actual).
	Mode string `json:"parallel_tool_call_reward_mode"`
}

// Validate reports every fault of the configuration.
func (c Comparator) Validate() error {
	var f faults.List
	f.Amount("word_count_similarity_threshold", c.WordThreshold)
	f.Amount("floating_point_comparison_threshold", c.FloatTolerance)
	faults.Word(&f, "parallel_tool_call_reward_mode", c.Mode, "binary_strict", "fractional", "f1")
	return f.Err()
}

// Comparison is the reward of one step, 0 to 1, and its reason.
type Comparison struct {
	Reward   float64 `json:"reward"`
	Category string  `json:"category"`
}

// Compare scores actual against expected. Errors are faults of the data, never of the answer: an
// invalid configuration, an expected action of no kind (kind input), or expected arguments that are
// not JSON (kind format).
func (c Comparator) Compare(expected, actual Action) (Comparison, error) {
	if err := c.Validate(); err != nil {
		return Comparison{}, err
	}
	if actual.Kind == noAction {
		return Comparison{0, noActionFound}, nil
	}
	switch expected.Kind {
	case message:
		if actual.Kind == message {
			return Comparison{1, expectedMessageFound}, nil
		}
		return Comparison{0, noExpectedMessage}, nil
	case oneCall, batch:
		if actual.Kind == message {
			return Comparison{0, noExpectedToolCall}, nil
		}
		return c.calls(expected.Calls, actual.Calls)
	}
	return Comparison{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "expected_action"}, "expected a message or a tool call to compare with, found %q", expected.Kind)
}

func (c Comparator) calls(expected, actual []Call) (Comparison, error) {
	if c.CountCalls && (len(actual) < len(expected) && !c.AllowSubset || len(actual) > len(expected) && !c.AllowSuperset) {
		return Comparison{0, batchLengthDiffers}, nil
	}

	// candidates holds, for each expected call, the actual calls that match it; failures holds the
	// first reason for a mismatch beyond the tool name.
	candidates := make([][]int, len(expected))
	failures := make([]string, len(expected))
	for i, e := range expected {
		failures[i] = unexpectedTool
		for j, a := range actual {
			r, err := c.call(e, a)
			if err != nil {
				return Comparison{}, err
			}
			if r.Reward == 1 {
				candidates[i] = append(candidates[i], j)
			} else if failures[i] == unexpectedTool {
				failures[i] = r.Category
			}
		}
	}
	matched := match(candidates, len(actual))
	count := 0
	unmatched := -1
	for i, ok := range matched {
		if ok {
			count++
		} else if unmatched < 0 {
			unmatched = i
		}
	}

	reward := c.reward(count, len(expected), len(actual))
	switch {
	case reward == 1 && len(expected) == 1:
		return Comparison{1, matchedCall}, nil
	case reward == 1:
		return Comparison{1, expectedBatch}, nil
	case unmatched < 0 || count == len(actual):
		// Only the number of calls differs.
		return Comparison{reward, batchLengthDiffers}, nil
	}
	return Comparison{reward, failures[unmatched]}, nil
}

func (c Comparator) reward(matched, expected, actual int) float64 {
	required := expected
	switch {
	case !c.CountCalls:
	case c.Mode == "f1":
		return 2 * float64(matched) / float64(max(1, expected+actual))
	case c.AllowSubset:
		required = min(expected, actual)
	}
	if c.CountCalls && c.Mode == "fractional" {
		return float64(matched) / float64(max(1, required))
	}
	if matched == required {
		return 1
	}
	return 0
}

// match reports which expected calls are part of a maximum matching, found by augmenting paths from
// the expected calls with the fewest candidates first. The order is part of the contract: it decides
// which call is named as the failure when several maximum matchings exist.
func match(candidates [][]int, actual int) []bool {
	order := make([]int, len(candidates))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return len(candidates[order[a]]) < len(candidates[order[b]]) })
	owner := make([]int, actual)
	for j := range owner {
		owner[j] = -1
	}
	var visited []bool
	var augment func(i int) bool
	augment = func(i int) bool {
		for _, j := range candidates[i] {
			if visited[j] {
				continue
			}
			visited[j] = true
			if owner[j] < 0 || augment(owner[j]) {
				owner[j] = i
				return true
			}
		}
		return false
	}
	matched := make([]bool, len(candidates))
	for _, i := range order {
		visited = make([]bool, actual)
		augment(i)
	}
	for _, i := range owner {
		if i >= 0 {
			matched[i] = true
		}
	}
	return matched
}

func (c Comparator) call(expected, actual Call) (Comparison, error) {
	if expected.Name != actual.Name {
		return Comparison{0, unexpectedTool}, nil
	}
	want, err := decode(expected.Arguments)
	if err != nil {
		return Comparison{}, rollout.Errorf(rollout.KindFormat, rollout.Where{Field: "expected_action"}, "the expected arguments of %s are not JSON: %v", expected.Name, err).
			WithFix("repair the data set: the reference raises JSONDecodeError")
	}
	got, err := decode(actual.Arguments)
	if err != nil {
		return Comparison{0, argumentsDecodeError}, nil
	}
	if category := c.values(want, got); category != "" {
		return Comparison{0, category}, nil
	}
	return Comparison{1, matchedCall}, nil
}

// values returns the category of the difference between two argument values, "" if they match.
func (c Comparator) values(want, got value) string {
	// As in Python, a boolean is an integer, but an integer is not a boolean.
	if want.kind != got.kind && !(want.kind == integer && got.kind == boolean) {
		return argumentTypeDiffers
	}
	switch want.kind {
	case object:
		if len(want.keys) != len(got.keys) {
			return argumentKeysDiffer
		}
		for _, k := range want.keys {
			if _, ok := got.of[k]; !ok {
				return argumentKeysDiffer
			}
		}
		for _, k := range want.keys {
			if category := c.values(want.of[k], got.of[k]); category != "" {
				return category
			}
		}
		return ""
	case list:
		if len(want.list) != len(got.list) {
			return argumentLengthDiffers
		}
		for i := range want.list {
			if category := c.values(want.list[i], got.list[i]); category != "" {
				return category
			}
		}
		return ""
	}
	if c.scalarsMatch(want, got) {
		return ""
	}
	return argumentValueDiffers
}

func (c Comparator) scalarsMatch(want, got value) bool {
	switch want.kind {
	case float:
		return math.Abs(got.float-want.float) < cmp.Or(c.FloatTolerance, 1e-6)
	case text:
		return c.textsMatch(want.text, got.text)
	case integer:
		if got.kind == boolean {
			return want.int.IsInt64() && (want.int.Int64() == 1 && got.bool || want.int.Int64() == 0 && !got.bool)
		}
		return want.int.Cmp(got.int) == 0
	case boolean:
		return want.bool == got.bool
	}
	return true // null
}

func (c Comparator) textsMatch(want, got string) bool {
	a, b := fields(lower(trim(want))), fields(lower(trim(got)))
	if len(a) < 2 || len(b) < 2 {
		return want == got
	}
	left := make(map[string]int, len(a))
	for _, w := range a {
		left[w]++
	}
	common := 0
	for _, w := range b {
		if left[w] > 0 {
			left[w]--
			common++
		}
	}
	return float64(common)/float64(len(a)+len(b)) >= c.WordThreshold
}

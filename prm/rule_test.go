package prm_test

import (
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/rollout"
)

// chatRule reads the votes of OpenClaw-RL's chat judge.
var chatRule = prm.Rule{Kind: "boxed-last", Digit: true, Scale: prm.ScoreRange{Values: []float64{-1, 0, 1}}}

func TestRules(t *testing.T) {
	none := math.NaN()
	decimalLast := prm.Rule{Kind: "boxed-last"}
	json := prm.Rule{Kind: "json", Scale: prm.ScoreRange{Min: 0, Max: 10}}
	for _, row := range []struct {
		reason string
		rule   prm.Rule
		text   string
		want   float64
	}{
		{"plain", prm.Rule{}, `so \boxed{1}`, 1},
		{"first box decides", prm.Rule{}, `\boxed{1} then \boxed{-1}`, 1},
		{"an unusable first box is not passed over", prm.Rule{}, `\boxed{2} then \boxed{1}`, none},
		{"a box that never closes is no box", prm.Rule{}, `\boxed{oops and \boxed{1}`, 1},
		{"one inner brace level belongs to the box", prm.Rule{}, `\boxed{\text{1}}`, none},
		{"two inner levels are no box, the next is", prm.Rule{}, `\boxed{{{1}}} \boxed{-1}`, -1},
		{"zero is no vote on the sign scale", prm.Rule{}, `\boxed{0}`, none},
		{"full-width digit", prm.Rule{}, `\boxed{-１}`, -1},
		{"mathematical bold digit", prm.Rule{}, "\\boxed{\U0001D7CF}", 1},
		{"digits of two scripts", prm.Rule{}, "\\boxed{１.٠}", 1},
		{"no-break space and file separator strip", prm.Rule{}, "\\boxed{\u00a0\x1c1\u2003}", 1},
		{"exponent is no plain decimal", prm.Rule{}, `\boxed{1e0}`, none},
		{"bare point before", prm.Rule{}, `\boxed{.1}`, none},
		{"bare point after", prm.Rule{}, `\boxed{1.}`, none},
		{"two points", prm.Rule{}, `\boxed{1.0.0}`, none},
		{"Unicode minus", prm.Rule{}, `\boxed{−1}`, none},
		{"within tolerance", prm.Rule{}, `\boxed{0.9999999999}`, 1},
		{"outside tolerance", prm.Rule{}, `\boxed{0.99999999}`, none},
		{"a number beyond float64", prm.Rule{}, `\boxed{` + strings.Repeat("9", 400) + `}`, none},
		{"last digit box", chatRule, `\boxed{1} \boxed{0}`, 0},
		{"a digit box with a blank is not seen", chatRule, `\boxed{-1} \boxed{ 1 }`, -1},
		{"an unusable last digit box decides", chatRule, `\boxed{1} \boxed{5}`, none},
		{"the hindsight judge has no zero", prm.Rule{Kind: "boxed-last", Digit: true}, `\boxed{1} \boxed{0}`, none},
		{"last decimal box", decimalLast, `\boxed{1} so \boxed{ -1.0 }`, -1},
		{"tail counts code points", prm.Rule{Kind: "tail"}, `\boxed{1}` + strings.Repeat("😀", 41), 1},
		{"one too many", prm.Rule{Kind: "tail"}, `\boxed{1}` + strings.Repeat("😀", 42), none},
		{"own tail", prm.Rule{Kind: "tail", Tail: 9}, `\boxed{1}`, 1},
		{"regex takes the last match", prm.Rule{Kind: "regex", Pattern: `(?m)^Score: (\S+)$`, Scale: prm.ScoreRange{Min: -5, Max: 5}}, "Score: 1\nScore: 4.5", 4.5},
		{"named group", prm.Rule{Kind: "regex", Pattern: `(a|b)=(?P<score>-?\d)`}, "a=1 b=-1", -1},
		{"out of range", prm.Rule{Kind: "regex", Pattern: `(\d+)`, Scale: prm.ScoreRange{Min: 0, Max: 5}}, "7", none},
		{"json", json, `{"score": 7.5}`, 7.5},
		{"json after code with braces", json, strings.Repeat("if a { return b }\n", 2000) + `{"score": 7.5}`, 7.5},
		{"json in a fence after prose with braces", json, "set {x} is fine\n```json\n{\"why\": \"a {b}\", \"score\": 3}\n```", 3},
		{"the last object that has it", json, `{"score": 1} {"score": 2} {"other": 5}`, 2},
		{"a number in a string", json, `{"score": " 4 "}`, 4},
		{"a bool is no number", json, `{"score": true}`, none},
		{"nested path", prm.Rule{Kind: "json", Field: "verdict.value"}, `{"verdict": {"value": -1.0}}`, -1},
		{"no object", json, `score: 3`, none},
		{"hostile braces end", json, strings.Repeat("{", 1<<20) + `{"score":1}`, none},
	} {
		t.Run(row.reason, func(t *testing.T) {
			parse, err := row.rule.Compile()
			require.NoError(t, err)
			v, err := parse(row.text)
			if math.IsNaN(row.want) {
				require.ErrorIs(t, err, rollout.KindJudge)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.want, v)
		})
	}
}

func TestRuleFaultsAllAtOnce(t *testing.T) {
	_, err := prm.Rule{Kind: "regex", Tail: -1, Pattern: "x", Scale: prm.ScoreRange{Min: 2, Max: 1}}.Compile()
	require.ErrorIs(t, err, rollout.KindInput)
	for _, part := range []string{"Rule.Tail", "Rule.Pattern", "Rule.Scale"} {
		require.ErrorContains(t, err, part)
	}
}

// Every decimal digit of Unicode has the value in its name: each run of ten starts at zero.
func TestDigitsOfAllScripts(t *testing.T) {
	parse, err := prm.Rule{Scale: prm.ScoreRange{Min: 0, Max: 9}}.Compile()
	require.NoError(t, err)
	next, seen := 0, 0
	last := rune(-2)
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !unicode.Is(unicode.Nd, r) {
			continue
		}
		if r != last+1 {
			next = 0
		}
		v, err := parse(`\boxed{` + string(r) + `}`)
		require.NoError(t, err, "%U", r)
		require.Equal(t, float64(next%10), v, "%U", r)
		last, next, seen = r, next+1, seen+1
	}
	require.Greater(t, seen, 600)
}

func FuzzRules(f *testing.F) {
	var parsers []prm.Parser
	for _, r := range []prm.Rule{
		{}, chatRule, {Kind: "boxed-last", Digit: true}, {Kind: "tail"}, {Kind: "boxed-last"},
		{Kind: "regex", Pattern: `(\d)`, Scale: prm.ScoreRange{Values: []float64{-1, 0, 1}}}, {Kind: "json", Scale: prm.ScoreRange{Values: []float64{-1, 0, 1}}},
	} {
		p, err := r.Compile()
		require.NoError(f, err)
		parsers = append(parsers, p)
	}
	for _, s := range []string{`\boxed{1}`, `\boxed{{1}}`, `{"score":1}`, "\xff\\boxed{\xff}", "[HINT_START]x[HINT_END]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		prm.Hint(text)
		for i, p := range parsers {
			if v, err := p(text); err == nil && v != -1 && v != 0 && v != 1 {
				t.Fatalf("parser %d: %g is outside its scale", i, v)
			}
		}
	})
}

func TestHint(t *testing.T) {
	require.Equal(t, "b", prm.Hint("[HINT_START]a[HINT_END] [HINT_START] b\n[HINT_END]"))
	require.Equal(t, "a[HINT_START]b", prm.Hint("[HINT_START]a[HINT_START]b[HINT_END]"))
	require.Empty(t, prm.Hint("[HINT_START]open"))
	one, minus := 1.0, -1.0
	texts := []string{"[HINT_START]elevenchars[HINT_END]", "[HINT_START]éééééééééé[HINT_END]", "[HINT_START]a much longer hint[HINT_END]", "[HINT_START]ELEVENCHARS[HINT_END]"}
	require.Equal(t, 0, prm.BestHint(texts, []*float64{&one, &one, &minus, &one}), "length counts code points, first of equals wins")
	require.Equal(t, -1, prm.BestHint(texts, []*float64{nil, &one, nil, nil}))
}

func TestAParserKeepsItsScaleAndHintsNeedNoScore(t *testing.T) {
	values := []float64{5}
	parse, err := prm.Rule{Scale: prm.ScoreRange{Values: values}}.Compile()
	require.NoError(t, err)
	values[0] = 7
	v, err := parse(`\boxed{5}`)
	require.NoError(t, err)
	require.Equal(t, 5.0, v)
	require.Equal(t, -1, prm.BestHint([]string{"[HINT_START]read the test first[HINT_END]"}, nil))
}

package audit_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/audit"
	"github.com/turnpack/turnpack/export/internal/pq"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/export/slime"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

// The vocabulary of the examples; all other ids are words.
var vocabulary = []string{"<|im_start|>", "<|im_end|>", "assistant", "user", "\n", "<think>", "</think>", "\n\n", `{"name": "bash", "arguments": "{\"command\": \"ls\"}"}`}

func facts() *audit.Model {
	return &audit.Model{Vocab: 100, Special: map[rollout.TokenID]bool{0: true, 1: true}, Stops: []rollout.TokenID{1},
		Headers: [][]rollout.TokenID{{0, 2, 4}}, Decode: func(ids []rollout.TokenID) (string, error) {
			var b strings.Builder
			for _, id := range ids {
				if id < 0 {
					return "", fmt.Errorf("id %d is negative", id)
				}
				if int(id) < len(vocabulary) {
					b.WriteString(vocabulary[id])
				} else {
					fmt.Fprintf(&b, "w%d ", id)
				}
			}
			return b.String(), nil
		}}
}

// good is a row without findings: a user turn, then an assistant turn with trained words and a
// trained stop token.
const good = `{"input_ids":[0,3,4,20,21,1,4,0,2,4,30,31,1],"loss_mask":[0,0,0,0,0,0,0,0,0,0,1,1,1],"group_id":"g","rollout_id":"a","reward":1}` + "\n" +
	`{"input_ids":[0,3,4,20,21,1,4,0,2,4,32,1],"loss_mask":[0,0,0,0,0,0,0,0,0,0,1,1],"group_id":"g","rollout_id":"b","reward":0}` + "\n"

// examples holds, for each rule, lines that break it.
var examples = []struct{ rule, lines string }{
	{"lengths", `{"input_ids":[9,10,11],"loss_mask":[0,1]}`},
	{"no-mask", `{"input_ids":[9,10,11]}`},
	{"mask-values", `{"input_ids":[9,10,11],"loss_mask":[0,-1,1]}`},
	{"negative-id", `{"input_ids":[9,-100,11],"loss_mask":[0,0,1]}`},
	{"outside-vocabulary", `{"input_ids":[9,100,11],"loss_mask":[0,0,1]}`},
	{"first-token-trained", `{"input_ids":[9,10],"loss_mask":[1,1]}`},
	{"no-trained-token", `{"input_ids":[9,10],"loss_mask":[0,0]}`},
	{"tail-untrained", `{"input_ids":[9,10,11],"loss_mask":[0,1,0]}`},
	{"prompt-trained", `{"input_ids":[9,10,11,12],"loss_mask":[0,0,1,1],"prompt_len":3}`},
	{"not-sampled", `{"input_ids":[9,10,11,12],"loss_mask":[0,0,1,1],"sources":[0,0,0,1],"flags":[2,2,2,3]}`},
	{"mask-shifted", `{"input_ids":[9,10,11,12,13,14,15],"loss_mask":[0,0,0,0,1,1,1],"logprobs":[0,0,0,-0.5,-0.1,-0.2,0]}`},
	{"logprob-on-masked", `{"input_ids":[9,10,11],"loss_mask":[0,0,1],"logprobs":[-0.4,0,-0.5]}`},
	{"logprob-zero", `{"input_ids":[9,10,11,12],"loss_mask":[0,0,1,1],"logprobs":[0,0,0,-0.5]}`},
	{"logprob-range", `{"input_ids":[9,10,11],"loss_mask":[0,0,1],"logprobs":[0,0,0.7]}`},
	{"logprob-drift", `{"input_ids":[9,10,11,12],"loss_mask":[0,0,1,1],"logprobs":[0,0,-0.5,-1.5],"train_logprobs":[0,0,-0.5,-0.25]}`},
	{"advantage-on-masked", `{"input_ids":[9,10,11],"loss_mask":[0,0,1],"advantages":[1,1,1]}`},
	{"advantage-not-finite", `{"input_ids":[9,10,11],"loss_mask":[0,0,1],"advantages":[0,0,null]}`},
	{"advantage-sign", `{"input_ids":[9,10],"loss_mask":[0,1],"group_id":"g","rollout_id":"a","reward":1,"advantage":-0.5}` + "\n" + `{"input_ids":[9,11],"loss_mask":[0,1],"group_id":"g","rollout_id":"b","reward":0,"advantages":[0,0.5]}`},
	{"torn-rollout", `{"input_ids":[9,10,11],"loss_mask":[0,1,1],"group_id":"g","rollout_id":"a","rollout_mask_sum":5}`},
	{"trained-twice", `{"input_ids":[9,10,11],"loss_mask":[0,1,1],"group_id":"g","rollout_id":"a"}` + "\n" + `{"input_ids":[9,10,11,12,13],"loss_mask":[0,1,1,0,1],"group_id":"g","rollout_id":"a"}`},
	{"duplicate-row", `{"input_ids":[9,10],"loss_mask":[0,1]}` + "\n" + `{"input_ids":[9,10],"loss_mask":[0,1]}`},
	{"group-split", `{"input_ids":[9,10],"loss_mask":[0,1],"group_id":"g"}` + "\n" + `{"input_ids":[9,11],"loss_mask":[0,1],"group_id":"h"}` + "\n" + `{"input_ids":[9,12],"loss_mask":[0,1],"group_id":"g"}`},
	{"single-rollout", `{"input_ids":[9,10],"loss_mask":[0,1],"group_id":"g","rollout_id":"a","reward":1}`},
	{"group-sizes", `{"input_ids":[9,10],"loss_mask":[0,1],"group_id":"g","rollout_id":"a","reward":1}` + "\n" + `{"input_ids":[9,11],"loss_mask":[0,1],"group_id":"g","rollout_id":"b","reward":0}` + "\n" + `{"input_ids":[9,12],"loss_mask":[0,1],"group_id":"h","rollout_id":"c","reward":1}`},
	{"zero-spread", `{"input_ids":[9,10],"loss_mask":[0,1],"group_id":"g","rollout_id":"a","reward":1}` + "\n" + `{"input_ids":[9,11],"loss_mask":[0,1],"group_id":"g","rollout_id":"b","reward":1}`},
	{"constant-reward", `{"input_ids":[9,10],"loss_mask":[0,1],"group_id":"g","rollout_id":"a","reward":0}` + "\n" + `{"input_ids":[9,11],"loss_mask":[0,1],"group_id":"h","rollout_id":"b","reward":0}`},
	{"truncated-complete", `{"input_ids":[9,10],"loss_mask":[0,1],"status":"completed","finish_reason":"length"}`},
	{"no-stop", `{"input_ids":[0,2,4,30,31],"loss_mask":[0,0,0,1,1],"status":"completed"}`},
	{"doubled-header", `{"input_ids":[0,2,4,0,2,4,30,1],"loss_mask":[0,0,0,0,0,0,1,1]}`},
	{"header-trained", `{"input_ids":[0,3,4,20,1,4,0,2,4,30,1],"loss_mask":[0,0,0,0,0,0,1,1,1,1,1]}`},
	{"empty-think-trained", `{"input_ids":[0,2,4,5,7,6,7,30,1],"loss_mask":[0,0,0,1,1,1,1,1,1]}`},
	{"stop-untrained", `{"input_ids":[0,2,4,30,31,1],"loss_mask":[0,0,0,1,1,0]}`},
	{"separator-trained", `{"input_ids":[0,2,4,30,1,4],"loss_mask":[0,0,0,1,1,1]}`},
	{"special-trained", `{"input_ids":[0,2,4,30,0,3,4,31,1],"loss_mask":[0,0,0,1,1,1,1,1,1]}`},
	{"escaped-arguments", `{"input_ids":[0,2,4,8,1],"loss_mask":[0,0,0,1,1]}`},
	{"control-in-text", `{"input_ids":[0,3,4,20,1,4,0,3,21,1,4,0,2,4,30,1],"loss_mask":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,1,1],"sources":[-1,-1,-1,0,0,0,0,0,0,-1,-1,-1,-1,-1,1,1],"flags":[16,0,0,2,18,2,18,2,2,16,0,16,0,0,3,49]}`},
	{"special-in-content", `{"input_ids":[0,3,4,20,1,21,1,4,0,2,4,30,1],"loss_mask":[0,0,0,0,0,0,0,0,0,0,0,1,1]}`},
}

func run(t testing.TB, name string, data []byte, model *audit.Model) *audit.Report {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	r, err := audit.Run(context.Background(), []string{path}, audit.Options{Model: model})
	require.NoError(t, err)
	for i := range r.Findings { // the output must not depend on the folder
		for j := range r.Findings[i].Examples {
			r.Findings[i].Examples[j].File = name
			r.Findings[i].Examples[j].Text = strings.ReplaceAll(r.Findings[i].Examples[j].Text, path, name)
		}
	}
	return r
}

func found(r *audit.Report) (ids []string) {
	for _, g := range r.Findings {
		ids = append(ids, g.Rule)
	}
	return ids
}

func group(t testing.TB, r *audit.Report, rule string) audit.Group {
	t.Helper()
	for _, g := range r.Findings {
		if g.Rule == rule {
			return g
		}
	}
	t.Fatalf("no finding %s among %v", rule, found(r))
	return audit.Group{}
}

func TestGoodRowsHaveNoFindings(t *testing.T) {
	require.Empty(t, found(run(t, "rows.jsonl", []byte(good), facts())))
}

// Each rule finds its example and is silent on good rows. docs/audit.md lists it with its
// output; UPDATE_GOLDEN=1 writes the page.
func TestEveryRuleHasAnExample(t *testing.T) {
	var page strings.Builder
	page.WriteString("# Audit rules\n\nWhat `turnpack audit` looks for. Each example breaks the rule; the last two rules are about files of turnpack itself. The page is made and checked by the tests of `export/audit`.\n" +
		"Rules marked *model* need `--model`. In the examples `0` is `<|im_start|>`, `1` is `<|im_end|>`, `2` is `assistant`, `3` is `user`, `4` is a line feed, `5` and `6` are `<think>` and `</think>`, `8` is a call.\n\n")
	seen := map[string]bool{"schema": true, "unfinished-set": true} // have their own tests
	for _, e := range examples {
		seen[e.rule] = true
		r := run(t, "rows.jsonl", []byte(e.lines), facts())
		g := group(t, r, e.rule)
		require.Contains(t, found(r), e.rule)
		for _, rule := range audit.Rules() {
			if rule.ID != e.rule {
				continue
			}
			mark := ""
			if rule.NeedsModel {
				mark = ", *model*"
				require.NotContains(t, found(run(t, "rows.jsonl", []byte(e.lines), nil)), e.rule, "it needs a model")
			}
			fmt.Fprintf(&page, "## %s (%s%s)\n\n%s.\n\n- harm: %s\n- fix: %s\n\n```json\n%s\n```\n\n", rule.ID, rule.Severity, mark, rule.Title, rule.Harm, rule.Fix, e.lines)
			for _, f := range g.Examples {
				fmt.Fprintf(&page, "    %s: %s\n", f.Where(), f.Text)
			}
			page.WriteString("\n")
		}
	}
	for _, rule := range audit.Rules() {
		require.True(t, seen[rule.ID], "rule %s has no example", rule.ID)
		if rule.ID == "schema" || rule.ID == "unfinished-set" {
			fmt.Fprintf(&page, "## %s (%s)\n\n%s.\n\n- harm: %s\n- fix: %s\n\n", rule.ID, rule.Severity, rule.Title, rule.Harm, rule.Fix)
		}
	}
	path := filepath.Join("..", "..", "docs", "audit.md")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, []byte(page.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), page.String(), "run with UPDATE_GOLDEN=1")
}

// Shifts by one token in either direction are found from log probabilities, advantages and
// turns; an aligned row is not reported.
func TestShifts(t *testing.T) {
	ids := `[0,3,4,20,1,4,0,2,4,30,31,1,4,0,3,4,22,1,4,0,2,4,32,33,1,4]`
	aligned := []int{9, 10, 11, 22, 23, 24}
	for by := -1; by <= 1; by++ {
		mask := make([]int, 26)
		for _, t := range aligned {
			mask[t+by] = 1
		}
		text, err := json.Marshal(mask)
		require.NoError(t, err)
		got := found(run(t, "a.jsonl", []byte(`{"input_ids":`+ids+`,"loss_mask":`+string(text)+`}`), facts()))
		require.Equal(t, by != 0, strings.Contains(strings.Join(got, " "), "mask-shifted"), "by %d: %v", by, got)
		lp := make([]float64, 26)
		for _, t := range aligned {
			lp[t] = -0.5
		}
		logs, err := json.Marshal(lp)
		require.NoError(t, err)
		for _, column := range []string{"logprobs", "advantages"} {
			got = found(run(t, "a.jsonl", []byte(`{"input_ids":`+ids+`,"loss_mask":`+string(text)+`,"`+column+`":`+string(logs)+`}`), nil))
			require.Equal(t, by != 0, strings.Contains(strings.Join(got, " "), "mask-shifted"), "%s by %d: %v", column, by, got)
		}
	}
}

func sample(id string, index int, trained ...int) rollout.Sample {
	s := rollout.Sample{Status: rollout.StatusCompleted, RolloutIndex: index, Reward: float64(index)}
	s.Group, s.Rollout = "g", id
	for t := range 8 {
		s.IDs, s.Weight = append(s.IDs, int32(10+t+index)), append(s.Weight, 0)
	}
	for _, t := range trained {
		s.Weight[t] = 1
	}
	return s
}

// The same rows give the same findings in every format.
func TestFormats(t *testing.T) {
	var rows []rollout.Sample
	for i, id := range []string{"a", "b"} {
		rows = append(rows, rollout.FinishRows([]rollout.Sample{sample(id, i, 4, 5, 7)})...)
	}
	for _, format := range []string{"parquet", "arrow", "arrow-stream"} {
		var buf bytes.Buffer
		w, err := export.NewWriter(&buf, export.Options{Format: format})
		require.NoError(t, err)
		for _, s := range rows {
			require.NoError(t, w.Write(s))
		}
		require.NoError(t, w.Close())
		r := run(t, "x.bin", buf.Bytes(), nil)
		require.Empty(t, found(r))
		require.Contains(t, r.Files[0].Format, "turnpack schema 1")
		require.EqualValues(t, 6, r.Trained)
	}
	path := filepath.Join(t.TempDir(), "0.pt")
	require.NoError(t, slime.Write(path, rows, slime.Options{}))
	pt, err := os.ReadFile(path)
	require.NoError(t, err)
	r := run(t, "0.pt", pt, nil)
	require.Empty(t, found(r))
	require.EqualValues(t, 6, r.Trained)
	require.EqualValues(t, 16, r.Tokens)
}

// Parquet from another writer: verl-style prompt and response columns with 64-bit ids, and a
// mask that covers the response and is one short in the second row.
func TestForeignParquet(t *testing.T) {
	cols := []pq.Column{{Name: "prompt_ids", Kind: pq.Int64, List: true, Nullable: true}, {Name: "response_ids", Kind: pq.Int64, List: true, Nullable: true},
		{Name: "response_mask", Kind: pq.Int64, List: true, Nullable: true, Encoding: pq.Dictionary}, {Name: "response_logprobs", Kind: pq.Float32, List: true, Nullable: true, Encoding: pq.Split},
		{Name: "uid", Kind: pq.Text, Nullable: true, Encoding: pq.Dictionary}, {Name: "reward_score", Kind: pq.Float32}}
	v := []pq.Values{
		{Longs: []int64{9, 10, 9, 10}, Lens: []int32{2, 2}}, {Longs: []int64{11, 12, 13, 14, 15}, Lens: []int32{2, 3}},
		{Longs: []int64{1, 1, 1, 1}, Lens: []int32{2, 2}}, {Floats: []float32{-1, -1, -1, -1, -1}, Lens: []int32{2, 3}},
		{Texts: []string{"g", "g"}, Nulls: []bool{false, false}}, {Floats: []float32{0, 1}},
	}
	var buf bytes.Buffer
	w, err := pq.NewWriter(&buf, cols, 0)
	require.NoError(t, err)
	require.NoError(t, w.WriteRowGroup(2, v))
	require.NoError(t, w.Close(nil))
	r := run(t, "verl.parquet", buf.Bytes(), nil)
	require.Equal(t, "Parquet with prompt_ids, response_ids, response_mask, response_logprobs", r.Files[0].Format)
	g := group(t, r, "lengths")
	require.Equal(t, 1, g.Rows)
	require.Equal(t, 1, g.Examples[0].Row)
	require.Contains(t, g.Examples[0].Text, "response_mask has 2 values for 3 response tokens")
}

// A batch of verl has all ids, those of the response again, and columns of the response.
func TestResponseBesideAllIDs(t *testing.T) {
	r := run(t, "verl.jsonl", []byte(`{"input_ids":[9,10,11,12,13],"responses":[11,12,13],"response_mask":[1,0,1],"rollout_log_probs":[-1,0,-2]}`+"\n"+
		`{"input_ids":[9,10,11],"responses":["of text","not of ids"],"loss_mask":[0,1,1]}`), nil)
	require.Empty(t, found(r))
	require.EqualValues(t, 4, r.Trained)
}

// A file of this module's schema that another writer wrote wrongly.
func TestSchemaRule(t *testing.T) {
	s := sample("a", 0, 4, 5, 7)
	s.IsLast, s.PromptLen, s.RolloutMaskSum = true, 4, 3
	var buf bytes.Buffer
	w, err := export.NewWriter(&buf, export.Options{ZstdLevel: -1})
	require.NoError(t, err)
	require.NoError(t, w.Write(s))
	require.NoError(t, w.Close())
	require.NotContains(t, found(run(t, "a.parquet", buf.Bytes(), nil)), "schema")
	renamed := bytes.ReplaceAll(buf.Bytes(), []byte("a#0"), []byte("b#0"))
	require.Contains(t, group(t, run(t, "b.parquet", renamed, nil), "schema").Examples[0].Text, `expected "a#0"`)
	s.IDs, s.Weight, s.Flags, s.Source, s.Turn = make([]int32, 400), make([]float32, 400), nil, nil, nil
	for i := 100; i < 400; i++ {
		s.Weight[i] = 1
	}
	s.PromptLen, s.RolloutMaskSum = 100, 300
	buf.Reset()
	w, err = export.NewWriter(&buf, export.Options{ZstdLevel: -1})
	require.NoError(t, err)
	require.NoError(t, w.Write(s))
	require.NoError(t, w.Close())
	torn := bytes.ReplaceAll(buf.Bytes(), binary.LittleEndian.AppendUint64(nil, 300), binary.LittleEndian.AppendUint64(nil, 500)) // as where a tool left rows out
	r := run(t, "c.parquet", torn, nil)
	require.Contains(t, found(r), "schema")
	require.Contains(t, group(t, r, "torn-rollout").Examples[0].Text, "train 300 tokens, rollout_mask_sum says 500")
	for _, name := range []string{"ragged.parquet"} { // written by pyarrow, with rows without trained tokens
		data, err := os.ReadFile(filepath.Join(kit.Dir(t, "trainers", "examples"), name))
		require.NoError(t, err)
		got := found(run(t, name, data, nil))
		require.Contains(t, got, "no-trained-token")
		require.Contains(t, got, "single-rollout")
		require.Contains(t, got, "zero-spread")
	}
}

// The file's metadata names its columns; the weights of its first row may all be 1.
func TestColumnsAreThoseOfTheFile(t *testing.T) {
	for _, format := range []string{"parquet", "arrow", "arrow-stream"} {
		var buf bytes.Buffer
		w, err := export.NewWriter(&buf, export.Options{Format: format, Columns: &export.Columns{Weights: true, Advantage: true}})
		require.NoError(t, err)
		for i, weight := range []float32{1, 0.5} {
			s := sample([]string{"a", "b"}[i], i, 4, 5, 7)
			s.Weight[5], s.Advantage = weight, new(0.5)
			for _, row := range rollout.FinishRows([]rollout.Sample{s}) {
				require.NoError(t, w.Write(row))
			}
		}
		require.NoError(t, w.Close())
		r := run(t, "x.bin", buf.Bytes(), nil)
		require.Empty(t, found(r))
		var text bytes.Buffer
		require.NoError(t, r.JSON(&text))
		var back map[string]any
		require.NoError(t, json.Unmarshal(text.Bytes(), &back))
		require.Equal(t, []any{}, back["findings"], "a list for those who go through it")

		unnamed := bytes.ReplaceAll(buf.Bytes(), []byte("weights,advantage"), []byte("weights,advantagX"))
		require.Contains(t, group(t, run(t, "y.bin", unnamed, nil), "schema").Examples[0].Text, "turnpack.columns of the file does not name it")
	}
}

// A completed rollout may have turns that a limit cut: only its last row shows how it ended.
func TestCutTurnsOfCompletedRollouts(t *testing.T) {
	for cut, want := range []bool{false, true} {
		rows := rollout.FinishRows([]rollout.Sample{sample("a", 0, 4, 5), sample("a", 0, 4, 7)})
		rows[cut].FinishReason = "length"
		var buf bytes.Buffer
		w, err := export.NewWriter(&buf, export.Options{})
		require.NoError(t, err)
		for _, s := range rows {
			require.NoError(t, w.Write(s))
		}
		require.NoError(t, w.Close())
		require.Equal(t, want, slices.Contains(found(run(t, "a.parquet", buf.Bytes(), nil)), "truncated-complete"))
	}
}

// A call made again samples another reply, whose first tokens can be those of the reply before: each is trained once.
func TestRepliesThatPart(t *testing.T) {
	const first = `{"input_ids":[9,10,5,6,7],"loss_mask":[0,0,1,1,1],"group_id":"g","rollout_id":"a"}` + "\n"
	for _, c := range []struct {
		ids, mask string
		twice     int
	}{
		{"[9,10,5,6,8]", "[0,0,1,1,1]", 0},
		{"[9,10,5,6,8,4]", "[0,0,1,1,0,1]", 0}, // the reply before went on
		{"[9,10,5,6,7,4]", "[0,0,1,1,1,1]", 0},
		{"[9,10,5,6,7,8,4]", "[0,0,1,1,1,0,1]", 3},
		{"[9,10,5,6,7]", "[0,0,1,1,1]", 3},
	} {
		r := run(t, "a.jsonl", []byte(first+`{"input_ids":`+c.ids+`,"loss_mask":`+c.mask+`,"group_id":"g","rollout_id":"a"}`), nil)
		require.Equal(t, c.twice > 0, slices.Contains(found(r), "trained-twice"), c.ids)
		if c.twice > 0 {
			require.EqualValues(t, c.twice, group(t, r, "trained-twice").Tokens)
		}
	}
	// An earlier reply that both rows train is a repetition all the same.
	r := run(t, "a.jsonl", []byte(`{"input_ids":[9,5,4,6,7],"loss_mask":[0,1,0,1,1],"group_id":"g","rollout_id":"a"}`+"\n"+`{"input_ids":[9,5,4,6,8],"loss_mask":[0,1,0,1,1],"group_id":"g","rollout_id":"a"}`), nil)
	require.EqualValues(t, 1, group(t, r, "trained-twice").Tokens)
}

// The steps of rows tell a reply that was sampled again from one that is written twice, unless a row trains
// more replies than it has steps.
func TestTheSameReplyOfAnotherStep(t *testing.T) {
	for _, c := range []struct {
		first  int
		second []int // what the second row trains
		want   bool
	}{{0, []int{4, 5}, true}, {1, []int{4, 5}, false}, {1, []int{4, 5, 7}, true}} {
		rows := []rollout.Sample{sample("a", 0, 4, 5), sample("a", 0, c.second...)}
		rows[0].FirstStep, rows[0].LastStep = 0, 0
		rows[1].FirstStep, rows[1].LastStep = c.first, 1
		var buf bytes.Buffer
		w, err := export.NewWriter(&buf, export.Options{})
		require.NoError(t, err)
		for _, s := range rollout.FinishRows(rows) {
			require.NoError(t, w.Write(s))
		}
		require.NoError(t, w.Close())
		require.Equal(t, c.want, slices.Contains(found(run(t, "a.parquet", buf.Bytes(), nil)), "trained-twice"), c)
	}
}

// Rows that the schema's own reader refuses are reported, and still audited.
func TestUnreadableRowsAreFindings(t *testing.T) {
	var buf bytes.Buffer
	w, err := export.NewWriter(&buf, export.Options{ZstdLevel: -1})
	require.NoError(t, err)
	for i, name := range []string{"a", "b"} {
		s := sample(name, i, 4, 5, 7)
		s.IsLast, s.PromptLen, s.RolloutMaskSum = true, 4, 3
		require.NoError(t, w.Write(s))
	}
	require.NoError(t, w.Close())
	broken := bytes.ReplaceAll(buf.Bytes(), []byte("completed"), []byte("completes"))
	r := run(t, "a.parquet", broken, nil)
	require.Contains(t, group(t, r, "schema").Examples[0].Text, "completes")
	require.Equal(t, 2, r.Rows)
}

// A group with a reward that is not finite has no best rollout, so advantage-sign is not
// reported.
func TestRewardsThatAreNoNumbersHaveNoSign(t *testing.T) {
	var buf bytes.Buffer
	w, err := export.NewWriter(&buf, export.Options{ZstdLevel: -1})
	require.NoError(t, err)
	for i, name := range []string{"a", "b"} {
		s := sample(name, i, 4, 5, 7)
		s.IsLast, s.PromptLen, s.RolloutMaskSum, s.Reward, s.Advantage = true, 4, 3, 3.5+float64(i), new(0.5-float64(i))
		require.NoError(t, w.Write(s))
	}
	require.NoError(t, w.Close())
	require.Contains(t, found(run(t, "a.parquet", buf.Bytes(), nil)), "advantage-sign")
	bits := func(v float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)) }
	broken := bytes.ReplaceAll(buf.Bytes(), bits(4.5), bits(float32(math.NaN())))
	require.NotContains(t, found(run(t, "b.parquet", broken, nil)), "advantage-sign")
}

func TestReportAndErrors(t *testing.T) {
	r := run(t, "rows.jsonl", []byte(examples[0].lines), nil)
	require.Equal(t, audit.Error, r.Worst())
	var table, text bytes.Buffer
	require.NoError(t, r.Table(&table))
	require.Contains(t, table.String(), "rows.jsonl row 0: 2 mask for 3 tokens")
	require.NoError(t, r.JSON(&text))
	var back map[string]any
	require.NoError(t, json.Unmarshal(text.Bytes(), &back))
	require.Equal(t, "error", back["findings"].([]any)[0].(map[string]any)["severity"])
	for name, c := range map[string]struct{ data, want string }{
		"empty.bin":  {"", "expected a Parquet"},
		"a.parquet":  {"PAR1garbage", "not a complete Parquet"},
		"a.pt":       {"PK\x03\x04", "torch"},
		"broken.txt": {"{\"input_ids\":[1]}\n{oops", ":2"},
		"other.json": {`{"a":1}`, "no token ids"},
		"frac.json":  {`{"input_ids":[1.5],"loss_mask":[1]}`, "no 32-bit integer"},
	} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(c.data), 0o600))
		_, err := audit.Run(context.Background(), []string{path}, audit.Options{})
		require.Error(t, err, name)
		require.ErrorContains(t, err, c.want, name)
		require.ErrorContains(t, err, name)
	}
	_, err := audit.Run(context.Background(), nil, audit.Options{})
	require.ErrorIs(t, err, rollout.KindInput)
	_, err = audit.Run(context.Background(), []string{os.DevNull}, audit.Options{}) // and pipes
	require.ErrorContains(t, err, "no regular file")
}

// The reference encoder that this project replaces has known defects, which the rules find in
// its own samples.
func TestReferenceDefects(t *testing.T) {
	f, err := os.Open(filepath.Join(kit.Dir(t, "conformance", "seed_parity"), "seed_parity.jsonl.gz"))
	require.NoError(t, err)
	defer f.Close() //nolint:errcheck // only read
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var lines bytes.Buffer
	steps := 0
	for d := json.NewDecoder(z); d.More(); {
		var c struct {
			ID    string `json:"id"`
			Steps []struct {
				Tokens   []int32 `json:"tokens"`
				Response int     `json:"response_length"`
				Mask     []int   `json:"loss_mask"`
				Status   string  `json:"status"`
			} `json:"steps"`
		}
		require.NoError(t, d.Decode(&c))
		for _, s := range c.Steps {
			steps++
			row, err := json.Marshal(map[string]any{"input_ids": s.Tokens, "response_length": s.Response, "loss_mask": s.Mask, "rollout_id": c.ID, "status": s.Status})
			require.NoError(t, err)
			lines.Write(append(row, '\n'))
		}
	}
	// Qwen3: <|im_start|> assistant \n, <|im_end|>, <think>, </think>.
	names := map[int32]string{151644: "<|im_start|>", 77091: "assistant", 198: "\n", 271: "\n\n", 151645: "<|im_end|>", 151667: "<think>", 151668: "</think>"}
	qwen := &audit.Model{Vocab: 151936, Special: map[rollout.TokenID]bool{151643: true, 151644: true, 151645: true}, Stops: []rollout.TokenID{151645},
		Headers: [][]rollout.TokenID{{151644, 77091, 198}}, Decode: func(ids []rollout.TokenID) (string, error) {
			var b strings.Builder
			for _, id := range ids {
				if n, ok := names[id]; ok {
					b.WriteString(n)
				} else {
					b.WriteString("x")
				}
			}
			return b.String(), nil
		}}
	r := run(t, "reference.jsonl", lines.Bytes(), qwen)
	require.Equal(t, steps, r.Rows)
	require.Greater(t, group(t, r, "doubled-header").Rows, steps*9/10)
	require.GreaterOrEqual(t, group(t, r, "empty-think-trained").Rows, 232, "the kit counts the fabricated ones")
	require.Greater(t, group(t, r, "tail-untrained").Rows, steps/2)
	require.NotEmpty(t, group(t, r, "special-in-content").Rows)
}

func FuzzRun(f *testing.F) {
	f.Add([]byte(good))
	for _, e := range examples {
		f.Add([]byte(e.lines))
	}
	for _, format := range []string{"parquet", "arrow", "arrow-stream"} {
		for _, level := range []int{0, -1} {
			var buf bytes.Buffer
			w, err := export.NewWriter(&buf, export.Options{Format: format, ZstdLevel: level})
			require.NoError(f, err)
			require.NoError(f, w.Write(rollout.FinishRows([]rollout.Sample{sample("a", 0, 4, 5, 7)})[0]))
			require.NoError(f, w.Close())
			f.Add(buf.Bytes())
		}
	}
	dir := f.TempDir()
	f.Fuzz(func(_ *testing.T, data []byte) {
		path := filepath.Join(dir, "x")
		if os.WriteFile(path, data, 0o600) == nil {
			_, _ = audit.Run(context.Background(), []string{path}, audit.Options{Model: facts()})
		}
	})
}

// Files of an incomplete set are reported, those of a complete set are not.
func TestUnfinishedSet(t *testing.T) {
	dir := t.TempDir()
	set, err := shard.Create(dir, shard.Options{GroupsPerShard: 1})
	require.NoError(t, err)
	for g := range 3 {
		s := rollout.Sample{Status: rollout.StatusCompleted}
		s.Group, s.Rollout, s.IDs, s.Weight = fmt.Sprint(g), fmt.Sprint(g), []int32{1, int32(g)}, []float32{0, 1}
		require.NoError(t, set.Write(rollout.FinishRows([]rollout.Sample{s})[0]))
	}
	look := func() []string {
		r, err := audit.Run(context.Background(), []string{filepath.Join(dir, "data", "part-00001.parquet")}, audit.Options{})
		require.NoError(t, err)
		return found(r)
	}
	require.Contains(t, look(), "unfinished-set")
	require.NoError(t, set.Close())
	require.NotContains(t, look(), "unfinished-set")
}

// Names and ids from a file are escaped before they are printed.
func TestTableIsClean(t *testing.T) {
	bad := "a\x1b]0;own\x07\u202e\r\n\u009b2J"
	text, err := json.Marshal(map[string]any{"input_ids": []int{9, 10}, "loss_mask": []int{1, 1}, "sample_id": bad, "group_id": bad, "rollout_id": bad, "reward": 1, "status": "completed", "finish_reason": "length"})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "x\x1b[31m.jsonl")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	r, err := audit.Run(context.Background(), []string{path}, audit.Options{})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, r.Table(&out))
	for _, c := range out.String() {
		require.True(t, c == '\n' || unicode.IsPrint(c), "%q in %q", c, out.String())
	}
	require.Contains(t, out.String(), `x\x1b[31m.jsonl`)
	_, err = audit.Run(context.Background(), []string{filepath.Join(t.TempDir(), "none")}, audit.Options{})
	require.Error(t, err)
}

// TestTrainersColumn checks that a trainer's column beside ours, as pyarrow adds it, is
// compared with the recorded one: bfloat16 noise is no finding, but the report has its figures.
func TestTrainersColumn(t *testing.T) {
	line := func(mine string) []byte {
		return []byte(`{"input_ids":[9,10,11,12],"loss_mask":[0,0,1,1],"rollout_log_probs":[-0.5,-1.5],"old_log_probs":` + mine + `,"response_length":2}`)
	}
	r := run(t, "rows.jsonl", line("[-0.5,-1.51]"), nil)
	require.NotContains(t, found(r), "logprob-drift")
	require.EqualValues(t, 2, r.Drift.Tokens)
	require.EqualValues(t, 1, r.Drift.Beyond)
	require.InDelta(t, 0.005, r.Drift.Mean, 1e-9)
	require.InDelta(t, 0.01, r.Drift.Largest, 1e-9)
	var out bytes.Buffer
	require.NoError(t, r.Table(&out))
	require.Contains(t, out.String(), "mean difference 0.005, 50.0% of 2 trained tokens off by more than 0.001, at most 0.01")
	g := group(t, run(t, "rows.jsonl", line("[-0.5,-3.5]"), nil), "logprob-drift")
	require.Equal(t, 1, g.Tokens)
	require.Equal(t, 3, g.Examples[0].Token)
	require.Nil(t, run(t, "rows.jsonl", []byte(good), nil).Drift)
	require.Contains(t, found(run(t, "rows.jsonl", line("[null,-1.5]"), nil)), "logprob-drift", "no number is no agreement")
	require.Contains(t, found(run(t, "rows.jsonl", line("[-1.5]"), nil)), "lengths")
}

// Control tokens in trained text are reported unless the model names them as written by the
// policy.
func TestControlTokensOfReplies(t *testing.T) {
	row := []byte(`{"input_ids":[0,2,4,30,8,31,1],"loss_mask":[0,0,0,1,1,1,1]}`)
	model := facts()
	model.Special = map[rollout.TokenID]bool{0: true, 1: true, 8: true}
	require.Contains(t, found(run(t, "rows.jsonl", row, model)), "special-trained")
	model.Inside = map[rollout.TokenID]bool{8: true}
	require.Empty(t, found(run(t, "rows.jsonl", row, model)))
}

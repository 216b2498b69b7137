package view_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/turnpack/turnpack/examples/turnpack/view"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

type head struct {
	Rows []struct {
		ID, Group, Rollout string
		Tokens, Trained    int
	}
	Findings []struct {
		Rule     string
		Examples []struct{ Row int }
	}
	From    int
	Audited bool
	Report  json.RawMessage
}

func headOf(t *testing.T, p string) head {
	t.Helper()
	var h head
	require.NoError(t, json.Unmarshal([]byte(contents(p)["head"]), &h))
	return h
}

// The page holds exactly the data of the batch.
func TestPageHoldsTheBatch(t *testing.T) {
	path, ids := batch(t, 9, -1)
	p := page(t, path)
	h, data := headOf(t, p), contents(p)
	rows, _, err := export.ReadAll(path)
	require.NoError(t, err)
	require.Len(t, h.Rows, len(rows))
	vocab := unpack(t, data["vocab"])
	m, err := embedded.Model()
	require.NoError(t, err)
	for i, s := range rows {
		require.Equal(t, ids[i], h.Rows[i].ID)
		require.Equal(t, s.Group, h.Rows[i].Group)
		require.Equal(t, []int{s.Len(), s.Trained()}, []int{h.Rows[i].Tokens, h.Rows[i].Trained})
		u := unpack(t, data[fmt.Sprintf("row-%d", i)])
		var got []rollout.TokenID
		var text []byte
		for k, n := range u.values["tokens"] {
			got = append(got, rollout.TokenID(vocab.values["ids"][int(n)]))
			for at := vocab.values["at"][int(n)]; at < vocab.values["at"][int(n)+1]; at++ {
				text = append(text, byte(vocab.values["bytes"][int(at)]))
			}
			require.EqualValues(t, s.Weight[k], u.values["weight"][k])
			require.EqualValues(t, s.Logprob[k], u.values["logprob"][k])
			require.EqualValues(t, s.Credit[k], u.values["advantage"][k])
			require.EqualValues(t, s.Version[k], u.values["version"][k])
			require.EqualValues(t, s.Turn[k], u.values["step"][k])
			require.EqualValues(t, s.Source[k], u.values["source"][k])
			require.EqualValues(t, s.Flags[k], u.values["flags"][k])
		}
		require.Equal(t, s.IDs, got)
		want, err := m.Tokenizer.Decode(s.IDs)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		require.Equal(t, "system", u.Messages[0].Role)
		trained := 0
		for _, m := range u.Messages {
			trained += m.Trained
			require.Equal(t, m.Role == "assistant", m.Trained > 0, "only the agent's messages train")
			require.Equal(t, m.Trained > 0, m.Step >= 0)
		}
		require.Equal(t, s.Trained(), trained)
	}
}

// Text of the batch cannot break out of its element, and the page fetches nothing.
func TestPageIsSelfContained(t *testing.T) {
	path, _ := batch(t, 8, -1)
	renamed := filepath.Join(t.TempDir(), "<!--rows--><b>&{{script}}.parquet")
	require.NoError(t, os.Rename(path, renamed))
	p := page(t, renamed)
	require.NotContains(t, p, "\u2028")
	require.NotContains(t, p, "taken")
	require.NotContains(t, p, "{{title}}")
	root, err := html.Parse(strings.NewReader(p))
	require.NoError(t, err)
	scripts, run, policy := 0, "", ""
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		attr := map[string]string{}
		for _, a := range n.Attr {
			attr[a.Key] = a.Val
			require.NotContains(t, []string{"src", "href", "action", "srcset", "data", "poster", "style"}, a.Key, "<%s> refers to something outside", n.Data)
			require.False(t, strings.HasPrefix(a.Key, "on"), "<%s> holds a handler", n.Data)
		}
		switch {
		case n.Type == html.ElementNode && n.Data == "script":
			scripts++
			if attr["type"] == "" {
				run += n.FirstChild.Data
			}
		case n.Type == html.CommentNode:
			t.Errorf("the page holds the comment %.40q", n.Data)
		case n.Data == "meta" && attr["http-equiv"] != "":
			policy = attr["content"]
		case n.Type == html.ElementNode && (n.Data == "b" || n.Data == "img" || n.Data == "link" || n.Data == "iframe"):
			t.Errorf("the page holds <%s>", n.Data)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	require.Equal(t, 8+3, scripts, "head, vocabulary, rows and one program")
	require.NotRegexp(t, regexp.MustCompile(`https?:|//[a-z]+\.|fetch\(|XMLHttpRequest|WebSocket|import\(|innerHTML|insertAdjacent|document\.write|eval\(`), run)
	sum := sha256.Sum256([]byte(run))
	require.Contains(t, policy, "default-src 'none'; script-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
}

func TestDeterministic(t *testing.T) {
	path, _ := batch(t, 5, -1)
	require.Equal(t, page(t, path), page(t, path))
}

func TestRows(t *testing.T) {
	path, ids := batch(t, 9, -1)
	for _, c := range []struct {
		rows     string
		from, to int
	}{{"0:3", 0, 3}, {"4:", 4, 9}, {":2", 0, 2}, {"7:50", 7, 9}} {
		h := headOf(t, page(t, path, "--rows", c.rows))
		var got []string
		for _, r := range h.Rows {
			got = append(got, r.ID)
		}
		require.Equal(t, ids[c.from:c.to], got, c.rows)
		require.Equal(t, c.from, h.From)
	}
	var out, errs bytes.Buffer
	require.Equal(t, 1, run(t, view.Cmd{}, []string{path, "--out", "-", "--rows", "9:"}, &out, &errs))
	require.Contains(t, errs.String(), "the file has 9 rows")
}

// A trainer's log probabilities are compared with the recorded ones, row by row.
func TestDrift(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"input_ids":[9,10,11,12],"loss_mask":[0,0,1,1],"logprobs":[0,0,-0.5,-1.5],"train_logprobs":[0,0,-0.5,-1.25]}`+"\n"+
		`{"input_ids":[9,10,11,12],"loss_mask":[0,0,1,1],"logprobs":[0,0,-0.5,-1.5]}`), 0o600))
	p := page(t, path)
	require.Contains(t, contents(p)["head"], `"drift":0.125,"beyond":0.5`)
	require.Equal(t, 1, strings.Count(contents(p)["head"], `"drift":`), "the second row has none")
}

// The page shows findings of the audit at their rows.
func TestFindings(t *testing.T) {
	m, err := embedded.Model()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "b.parquet")
	w, err := export.Create(path, export.Options{Tokenizer: m.Tokenizer.Digest()})
	require.NoError(t, err)
	for i := range 2 { // two equal rows
		s := rollout.Sample{Status: rollout.StatusCompleted, RolloutIndex: i, Reward: float64(i)}
		s.Group, s.Rollout, s.IDs, s.Weight = "g", fmt.Sprint(i), []rollout.TokenID{5, 6, 7}, []float32{0, 1, 1}
		require.NoError(t, w.Write(rollout.FinishRows([]rollout.Sample{s})[0]))
	}
	require.NoError(t, w.Close())
	h := headOf(t, page(t, path))
	require.True(t, h.Audited)
	i := 0
	for i < len(h.Findings) && h.Findings[i].Rule != "duplicate-row" {
		i++
	}
	require.Less(t, i, len(h.Findings), "%v", h.Findings)
	require.Equal(t, 1, h.Findings[i].Examples[0].Row)
	require.False(t, headOf(t, page(t, path, "--no-audit")).Audited)
	for _, f := range headOf(t, page(t, path, "--rows", "0:1")).Findings {
		for _, p := range f.Examples {
			require.Less(t, p.Row, 1, "rows that are not on the page are not marked")
		}
	}
}

func TestCommand(t *testing.T) {
	path, _ := batch(t, 2, -1)
	call := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		return run(t, view.Cmd{}, args, &out, &errs), errs.String()
	}
	code, errs := call(path)
	require.Zero(t, code, errs)
	first, err := os.ReadFile(strings.TrimSuffix(path, ".parquet") + ".html")
	require.NoError(t, err)
	require.Equal(t, page(t, path), string(first))
	code, errs = call(path)
	require.Equal(t, 1, code)
	require.Contains(t, errs, "--force")
	code, errs = call("--force", path)
	require.Zero(t, code, errs)
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*part*"))
	require.NoError(t, err)
	require.Empty(t, left)
	for _, force := range []string{"--force=false", "--force"} {
		code, errs = call(path, "--out", t.TempDir(), force)
		require.Equal(t, 1, code)
		require.Contains(t, errs, "the output is a folder")
	}
	code, _ = call("-h")
	require.Zero(t, code)
	for _, args := range [][]string{{}, {path, path}, {path, "--rows", "3"}, {path, "--rows", "3:2"}, {path, "--rows", "-1:2"}, {path, "--nonsense"}} {
		code, errs = call(args...)
		require.Equal(t, 2, code, args)
		require.NotEmpty(t, errs)
	}
	cut := filepath.Join(t.TempDir(), "cut.parquet")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cut, b[:len(b)/2], 0o600))
	for _, args := range [][]string{{"none.parquet"}, {cut}, {path, "--model", t.TempDir(), "--force"}, {path, "--out", filepath.Join(t.TempDir(), "no", "page.html")}} {
		code, errs = call(args...)
		require.Equal(t, 1, code, args)
		require.NotEmpty(t, errs)
	}
}

// An id outside the vocabulary is shown as such.
func TestUnknownID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.parquet")
	w, err := export.Create(path, export.Options{})
	require.NoError(t, err)
	s := rollout.Sample{Status: rollout.StatusCompleted}
	s.Group, s.Rollout, s.IDs, s.Weight = "g", "r", []rollout.TokenID{5, 999_999_999}, []float32{0, 0.25}
	require.NoError(t, w.Write(rollout.FinishRows([]rollout.Sample{s})[0]))
	require.NoError(t, w.Close())
	data := contents(page(t, path))
	v := unpack(t, data["vocab"])
	require.Equal(t, []float64{5, 999_999_999}, v.values["ids"])
	require.Equal(t, []float64{0, 4}, v.values["facts"])
	require.Equal(t, []float64{0, 0.25}, unpack(t, data["row-0"]).values["weight"], "weights that are no mask are kept exactly")
}

// The page shows the report from the record next to the batch.
func TestReport(t *testing.T) {
	path, _ := batch(t, 8, -1)
	require.Nil(t, headOf(t, page(t, path)).Report, "no record")
	const record = `{"version":1,"options":{"Recipe":"nemotron-swe2","Estimator":"grpo"},"summary":{"rollouts":12,"groups":3,"status":{"completed":9,"truncated":3},"verdicts":{"resolved":5,"unresolved":7},
"rollouts_without_rows":{"all rewards are alike":4,"</script><b>":1},"masked_rows":{"overlong":2},
"shaping":{"groups_left_out":{"alike":1}},"judge":{"steps":20,"unanimous":15,"kappa":0.25,"failed":1,"unparsed":2,"not_computed":3},
"batch":{"rollouts":12,"graded":12,"resolved":5,"truncated":3,"solves":[{"solved":1,"of":4,"groups":2},{"solved":3,"of":4,"groups":1}],
"reward":{"n":12,"mean":-0.1666,"std":1,"min":-1,"p10":-1,"median":-1,"p90":1,"max":1},"advantage":{"n":8,"mean":0,"std":1,"min":-1,"p10":-1,"median":0,"p90":1,"max":1},"steps":{"n":0},"rows":{"n":0},"tokens":{"n":0},"trained":{"n":0}}}}`
	beside := filepath.Join(filepath.Dir(path), ".turnpack.json")
	require.NoError(t, os.WriteFile(beside, []byte(record), 0o600))
	p := page(t, path)
	require.Equal(t, p, page(t, path), "the same bytes")
	var r struct {
		Rollouts int
		Recipe   string
		Batch    struct {
			Solves []struct{ Solved, Of, Groups int }
		}
	}
	require.NoError(t, json.Unmarshal(headOf(t, p).Report, &r))
	require.Equal(t, 12, r.Rollouts)
	require.Equal(t, "nemotron-swe2", r.Recipe)
	require.Len(t, r.Batch.Solves, 2)

	if node, err := exec.LookPath("node"); err != nil {
		t.Log("SKIPPED in part: install node to run the page's program here")
	} else {
		program := `const made = (tag) => ({tag, attrs: {}, children: [], style: {}, append(...c) { this.children.push(...c) }, replaceChildren(...c) { this.children = c }, setAttribute(k, v) { this.attrs[k] = v }, addEventListener() {}, querySelector: () => made("b"), get textContent() { return this.text ?? this.children.map((c) => c.textContent ?? String(c)).join(" ") }, set textContent(v) { this.text = v }});
const page = {}; globalThis.document = {createElement: made, getElementById: (id) => page[id] ??= made("div"), documentElement: made("html")};
page.head = made("script"); page.head.textContent = require("fs").readFileSync(0, "utf8");
` + asset(t, "data.js") + asset(t, "lines.js") + asset(t, "charts.js") + `
drawBatch(); console.log(page.batch.textContent);`
		file := filepath.Join(t.TempDir(), "page.js")
		require.NoError(t, os.WriteFile(file, []byte(program), 0o600))
		cmd := exec.CommandContext(t.Context(), node, file)
		cmd.Stdin = strings.NewReader(contents(p)["head"])
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		for _, says := range []string{"12 rollouts read in 3 groups", "41.7 % of 12 graded ones resolved", "recipe nemotron-swe2", "1 of 4", "3 of 4", "all rewards are alike", "</script><b>", "75.0 % of steps with votes unanimous, κ 0.25", "overlong"} {
			require.Contains(t, string(out), says)
		}
		require.NotContains(t, string(out), "undefined")
	}
	require.NoError(t, os.WriteFile(beside, []byte(`{"summary":{"rollouts":12}}`), 0o600)) // of an earlier build
	require.Nil(t, headOf(t, page(t, path)).Report)
}

func asset(t *testing.T, name string) string {
	b, err := os.ReadFile(filepath.Join("assets", name))
	require.NoError(t, err)
	return string(b)
}

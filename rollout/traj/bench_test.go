package traj_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout/traj"
)

func BenchmarkImport(b *testing.B) {
	text := strings.Repeat("def f(x):\n    return \"x\" + x  # naïve\n", 60)
	var messages []string
	for i := range 60 {
		role := []string{"user", "assistant"}[i%2]
		messages = append(messages, fmt.Sprintf(`{"role":%q,"content":%q}`, role, text))
	}
	line := `{"instance_id":"i","messages":[` + strings.Join(messages, ",") + "]}\n"
	src := strings.Repeat(line, 50)
	for _, c := range []struct{ name, file string }{{"jsonl", "x.jsonl"}, {"list", "x.json"}} {
		in := src
		if c.name == "list" {
			in = "[" + strings.TrimSuffix(strings.ReplaceAll(src, "}\n", "},"), ",") + "]"
		}
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for range b.N {
				r, err := traj.NewReader(strings.NewReader(in), c.file, stop)
				require.NoError(b, err)
				for _, err := range r.All() {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkImportWire reads recorded exchanges of about 1.7 KB, one per line.
func BenchmarkImportWire(b *testing.B) {
	root := kit.Dir(b, "data", "trajectories")
	for name, files := range map[string][]string{
		"openai":    {"openai-wire/tool_calls_1.json", "openai-wire/tool_calls_2.json"},
		"anthropic": {"anthropic-messages/thinking.json", "anthropic-messages/tools_parallel.json"},
	} {
		var lines bytes.Buffer
		for _, f := range files {
			require.NoError(b, json.Compact(&lines, []byte(plain(b, filepath.Join(root, f)))))
			lines.WriteByte('\n')
		}
		in := strings.Repeat(lines.String(), 1000)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			perCPU(b, int64(len(in)), func() {
				r, err := traj.NewReader(strings.NewReader(in), "x.jsonl", stop)
				require.NoError(b, err)
				for _, err := range r.All() {
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// perCPU also reports processor time, which does not depend on other jobs.
func perCPU(b *testing.B, size int64, f func()) {
	b.ReportAllocs()
	before := kit.CPUTime()
	for range b.N {
		f()
	}
	if used := kit.CPUTime() - before; used > 0 {
		b.ReportMetric(float64(b.N)*float64(size)/1e6/used.Seconds(), "MB/cpu-s")
	}
}

// BenchmarkImportKit reads recorded dumps, decompressed beforehand.
func BenchmarkImportKit(b *testing.B) {
	dir := b.TempDir()
	root := kit.Dir(b, "data", "trajectories")
	for _, format := range []string{"mini-swe-agent", "swe-agent", "openai-chat", "nemo-gym", "tau-bench", "openhands-output", "swe-agent-nebius", "sharegpt", "adp"} {
		var size int64
		var paths []string
		files, err := filepath.Glob(filepath.Join(root, format, "*"))
		require.NoError(b, err)
		for _, p := range files {
			if strings.HasSuffix(p, ".md") || strings.HasSuffix(p, "reports") {
				continue
			}
			name := strings.TrimSuffix(filepath.Base(p), ".gz")
			text := plain(b, p)
			if strings.HasSuffix(name, ".jsonl") {
				if !strings.HasSuffix(text, "\n") {
					text += "\n"
				}
				text = strings.Repeat(text, 20)
			}
			q := filepath.Join(dir, format+"-"+name)
			require.NoError(b, os.WriteFile(q, []byte(text), 0o600))
			size += int64(len(text))
			paths = append(paths, q)
		}
		b.Run(format, func(b *testing.B) {
			b.SetBytes(size)
			perCPU(b, size, func() { all(b, stop, paths...) })
		})
	}
}

// BenchmarkImportSessions reads agent sessions of 4,000 calls, verifiers results and dumps
// of token ids.
func BenchmarkImportSessions(b *testing.B) {
	long := strings.Repeat("some output of a tool, line after line\\n", 60)
	claudes := []string{claude("user", "r", "", said("user", `"q"`))}
	codexes := []string{codexMeta(""), codexSaid(1, "user", "q")}
	parent := "r"
	for i := range 4000 {
		id := fmt.Sprint(i)
		claudes = append(claudes, claude("assistant", "a"+id, parent, reply("m"+id, `{"type":"text","text":"`+long[:800]+`"},`+use("c"+id), `"tool_use"`)),
			claude("user", "r"+id, "a"+id, said("user", `[{"type":"tool_result","tool_use_id":"c`+id+`","content":"`+long+`"}]`)))
		codexes = append(codexes, item(2, `"type":"function_call","name":"shell","arguments":"{}","call_id":"f`+id+`"`), codexLine(2, "event_msg", codexCount),
			item(2, `"type":"function_call_output","call_id":"f`+id+`","output":"`+long+`"`))
		parent = "r" + id
	}
	list := func(x string) string { return "[" + strings.TrimSuffix(strings.Repeat(x+",", 6000), ",") + "]" }
	tokens := `{"token_ids":` + list("12345") + `,"loss_mask":` + strings.Replace(list("1"), "1", "0", 3000) + `,"inference_logprobs":` + list("-0.123456") + `,"step":1}` + "\n"
	results := strings.Replace(verifiersResult, `"content":"o"`, `"content":"`+long+long+`"`, 1) + "}\n"
	for name, in := range map[string]string{"claude-code": lines(claudes...), "codex": lines(codexes...), "prime-rl": strings.Repeat(tokens, 200), "verifiers": strings.Repeat(results, 3000)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			perCPU(b, int64(len(in)), func() {
				r, err := traj.NewReader(strings.NewReader(in), "x.jsonl", stop)
				require.NoError(b, err)
				for _, err := range r.All() {
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkImportFile reads the file that TURNPACK_IMPORT names, such as a shard of a data
// set; TURNPACK_IMPORT_BYTES is the length of its text.
func BenchmarkImportFile(b *testing.B) {
	path := os.Getenv("TURNPACK_IMPORT")
	if path == "" {
		b.Skip("SKIPPED: set TURNPACK_IMPORT to a file")
	}
	size, err := strconv.ParseInt(os.Getenv("TURNPACK_IMPORT_BYTES"), 10, 64)
	require.NoError(b, err)
	b.SetBytes(size)
	perCPU(b, size, func() {
		r, err := traj.Open([]string{path}, stop)
		require.NoError(b, err)
		for _, err := range r.All() {
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

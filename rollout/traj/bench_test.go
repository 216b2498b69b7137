package traj_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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

// BenchmarkImportWire reads recorded exchanges of about 1.7 KB, one a line.
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

// perCPU reports processor time too, so that other jobs do not count.
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

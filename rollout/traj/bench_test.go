package traj_test

import (
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
			b.ReportAllocs()
			for range b.N {
				all(b, stop, paths...)
			}
		})
	}
}

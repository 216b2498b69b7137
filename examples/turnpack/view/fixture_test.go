package view_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/view"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/embedded"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// hostile is text that would break out of the page, hide or reorder it if written
// unescaped.
const hostile = "</script><script>document.title='taken'</script><!-- <img src=x onerror=alert(1)> \u2028\u2029 \u202eevil\u202c {{script}} <!--rows--> \x1b[31m \x00 'a' \"b\""

// batch writes rows: rollouts of a few turns in groups of four. Row long, unless −1, has
// at least 100,000 tokens.
func batch(t *testing.T, rows, long int) (path string, ids []string) {
	t.Helper()
	m, err := embedded.Model()
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "batch.parquet")
	w, err := export.Create(path, export.Options{Tokenizer: m.Tokenizer.Digest(), Trace: true})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		s := sample(t, m, rng, i, i == long)
		settled := rollout.FinishRows([]rollout.Sample{s})
		require.Len(t, settled, 1)
		require.NoError(t, w.Write(settled[0]))
		ids = append(ids, settled[0].ID)
	}
	require.NoError(t, w.Close())
	return path, ids
}

func sample(t *testing.T, m *tokenize.Model, rng *rand.Rand, i int, long bool) rollout.Sample {
	adv := rng.NormFloat64()
	s := rollout.Sample{Status: rollout.StatusCompleted, FinishReason: "stop", RolloutIndex: i % 4, Reward: float64(rng.IntN(3)) - 1, Advantage: &adv, Temperature: 1}
	s.Group = fmt.Sprintf("task-%04d", i/4)
	s.Rollout = fmt.Sprintf("%s/%d %s", s.Group, i%4, []string{"</script>", "<!--", "漢字", "plain"}[i%4])
	roles := []string{"system", "user"}
	// add appends text of the newest message, or of the template.
	add := func(text string, recorded, trained bool) {
		var e engine.Encoding
		require.NoError(t, m.Tokenizer.Encode(&e, text, engine.EncodeOptions{}))
		for _, id := range e.IDs {
			lp, weight, version := float32(0), float32(0), int32(-1)
			if trained {
				lp, weight, version = float32(-rng.ExpFloat64()), 1, 7
			}
			s.IDs, s.Logprob, s.Weight, s.Version = append(s.IDs, id), append(s.Logprob, lp), append(s.Weight, weight), append(s.Version, version)
			from, flags, step := int32(-1), rollout.Flag(0), int32(-1)
			if recorded {
				from, flags = int32(len(roles)-1), rollout.FlagContent
			}
			if trained {
				flags, step = flags|rollout.FlagSampled, int32(s.LastStep)
			}
			s.Source, s.Flags, s.Turn = append(s.Source, from), append(s.Flags, flags), append(s.Turn, step)
			s.Credit = append(s.Credit, weight*float32(adv)*float32(0.5+rng.Float64()))
		}
	}
	s.LastStep = -1
	roles = roles[:1]
	add("<|im_start|>system\n", false, false)
	add("You repair bugs. "+hostile, true, false)
	message := func(role, text string) {
		close := "<|im_end|>"
		if roles[len(roles)-1] == "assistant" {
			close = "" // it is sampled
		}
		roles = append(roles, role)
		add(close+"\n<|im_start|>"+role+"\n", false, false)
		add(text, true, false)
	}
	message("user", "Zeile mit Ümläuten, 漢字かな交じり文, 🙂👩‍👩‍👧 and\ttabs\r\n")
	turns := 1 + rng.IntN(6)
	for turn := 0; turn < turns || long && len(s.IDs) < 100_000; turn++ {
		if turn > 0 {
			message("tool", strings.Repeat("0123456789abcdef", rng.IntN(60)))
		}
		message("assistant", "")
		s.LastStep++
		add(fmt.Sprintf("<think>\nstep %d: needle%d lies in file %d\n</think>\n\n%s<|im_end|>", turn, i, rng.IntN(99), strings.Repeat("for i in range(n): total += xs[i]\n", 1+rng.IntN(12))), true, true)
	}
	text, err := json.Marshal(map[string]any{"note": "</script><b>\u2028", "turnpack": map[string]any{"roles": roles}})
	require.NoError(t, err)
	s.Metadata = text
	return s
}

// run runs the view command and returns its exit code.
func run(t *testing.T, c view.Cmd, args []string, out, errs *bytes.Buffer) int {
	line := struct {
		View view.Cmd `cmd:""`
	}{c}
	return cli.Main(&line, &cli.Program{Ctx: t.Context(), Out: out, Err: errs}, append([]string{"view"}, args...))
}

// page runs the command and returns the page.
func page(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	require.Zero(t, run(t, view.Cmd{}, append(args, "--out", "-"), &out, &errs), errs.String())
	return out.String()
}

var blocks = regexp.MustCompile(`<script type="([a-z/]+)" id="([a-z0-9-]+)">([^<]*)</script>\n`)

// contents returns the text of each data block of a page by its id.
func contents(p string) map[string]string {
	out := map[string]string{}
	for _, m := range blocks.FindAllStringSubmatch(p, -1) {
		out[m[2]] = m[3]
	}
	return out
}

// unpacked is a block decoded as by the page's script, written independently from the
// description in encode.go.
type unpacked struct {
	Messages []struct {
		From, Trained, Step int
		Role                string
	}
	Fields  []string
	Columns []struct {
		Name, Type string
		Len        int
	}
	values map[string][]float64
}

func unpack(t *testing.T, text string) unpacked {
	t.Helper()
	packed, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	b, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	require.NoError(t, err)
	n := int(binary.LittleEndian.Uint32(b))
	var u unpacked
	require.NoError(t, json.Unmarshal(b[4:4+n], &u))
	u.values = map[string][]float64{}
	at := 4 + n
	for _, c := range u.Columns {
		at = (at + 3) / 4 * 4
		v := make([]float64, c.Len)
		for i := range v {
			switch c.Type {
			case "u8":
				v[i] = float64(b[at])
				at++
			case "u16":
				v[i] = float64(binary.LittleEndian.Uint16(b[at:]))
				at += 2
			case "u32":
				v[i] = float64(binary.LittleEndian.Uint32(b[at:]))
				at += 4
			case "i32":
				v[i] = float64(int32(binary.LittleEndian.Uint32(b[at:])))
				at += 4
			case "f32":
				v[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[at:])))
				at += 4
			default:
				t.Fatalf("column %s has the unknown type %q", c.Name, c.Type)
			}
		}
		u.values[c.Name] = v
	}
	require.Equal(t, len(b), at, "the columns fill the block")
	return u
}

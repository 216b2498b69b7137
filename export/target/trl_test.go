package target_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/target"
	"github.com/turnpack/turnpack/rollout"
)

// TRL takes real optimizer steps on our file, with its own advantages and with the file's, and
// the weights change as independently computed gradients predict.
func TestTRLStep(t *testing.T) {
	bin := os.Getenv("TURNPACK_PYTHON")
	if bin == "" || exec.Command(bin, "-c", "import importlib.util as u, sys; sys.exit(0 if u.find_spec('trl') else 1)").Run() != nil {
		t.Skip("SKIPPED: set TURNPACK_PYTHON to a Python with trl and torch to run this test")
	}
	r := rand.New(rand.NewPCG(1, 1))
	tg, err := target.New("trl", target.Options{})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "batch.parquet")
	w, err := export.Create(path, export.Options{})
	require.NoError(t, err)
	for g := range 3 {
		var rows []rollout.Sample
		for i := range 4 {
			s := row(fmt.Sprintf("g%d", g), fmt.Sprintf("g%d/%d", g, i), i, 0, 5+g, 1+r.IntN(6), 2, 1+r.IntN(5))
			for k := range s.IDs {
				s.IDs[k] = int32(r.IntN(500))
			}
			for k := range 5 + g { // one prompt per group
				s.IDs[k] = int32(10*g + k)
			}
			for k, lp := range s.Logprob { // close to the policy's, so that ratios are near 1 and sometimes clipped
				if lp < 0 {
					s.Logprob[k] = -6.2 - r.Float32()/2
				}
			}
			s.Reward, s.Temperature = float64(i*(g+1)%3)/2, 0.8
			s.Advantage = new(r.Float64() - 0.5)
			rows = append(rows, s)
		}
		rows, err = tg.Group(rows)
		require.NoError(t, err)
		for _, s := range rows {
			require.NoError(t, w.Write(s))
		}
	}
	require.NoError(t, w.Close())
	out, err := exec.Command(bin, filepath.Join("..", "..", "internal", "oracle", "train_trl.py"), path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}

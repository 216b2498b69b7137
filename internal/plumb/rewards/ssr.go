package rewards

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/reward/ssr"
	"github.com/turnpack/turnpack/rollout"
)

// ssrLine answers lines of the three kit files, which it distinguishes by their fields.
func ssrLine(ctx context.Context, line []byte) (any, error) {
	var head struct {
		Kind     string          `json:"kind"`
		Artifact json.RawMessage `json:"artifact"`
		N        *int            `json:"n"`
	}
	if err := pipe.Decode(line, &head); err != nil {
		return nil, err
	}
	switch {
	case head.Kind != "":
		return ssrReward(head.Kind, line)
	case head.Artifact != nil:
		return ssrCheck(ctx, line)
	case head.N != nil:
		return ssrExpectation(line)
	}
	return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{}, "expected a kind, an artifact or n in an ssr case, found none of them")
}

type scalar struct {
	Expected float64 `json:"expected"`
}

func ssrReward(kind string, line []byte) (any, error) {
	switch kind {
	case "r_inject":
		in := struct {
			Solved   int     `json:"solved"`
			Attempts int     `json:"attempts"`
			Valid    bool    `json:"valid"`
			Alpha    float64 `json:"alpha"`
		}{Alpha: ssr.DefaultAlpha}
		if err := pipe.Decode(line, &in); err != nil {
			return nil, err
		}
		r, err := ssr.InjectReward(in.Solved, in.Attempts, in.Valid, in.Alpha)
		return scalar{r}, err
	case "r_solve":
		var in struct {
			Tests []string `json:"tests"`
		}
		if err := pipe.Decode(line, &in); err != nil {
			return nil, err
		}
		r, err := ssr.SolveReward(in.Tests)
		return scalar{r}, err
	case "r_inject_from_attempts":
		in := struct {
			Attempts []ssr.Attempt `json:"attempts"`
			MinLive  int           `json:"min_live_attempts"`
			Alpha    float64       `json:"alpha"`
		}{Alpha: ssr.DefaultAlpha}
		if err := pipe.Decode(line, &in); err != nil {
			return nil, err
		}
		s, err := ssr.Resolve(in.Attempts, in.MinLive, in.Alpha)
		return map[string]any{"solved": s.Solved, "live": s.Live, "r_inject": s.Inject, "r_solve": s.Solve}, err
	}
	return nil, pipe.Unsupported("ssr kind " + kind)
}

func ssrExpectation(line []byte) (any, error) {
	in := struct {
		N     int       `json:"n"`
		Alpha float64   `json:"alpha"`
		P     []float64 `json:"p"`
	}{Alpha: ssr.DefaultAlpha}
	if err := pipe.Decode(line, &in); err != nil {
		return nil, err
	}
	if _, err := ssr.InjectReward(0, in.N, true, in.Alpha); err != nil {
		return nil, err
	}
	e := ssr.Expectation{Attempts: in.N, Alpha: in.Alpha}
	inject, solve := make([]float64, len(in.P)), make([]float64, len(in.P))
	for i, p := range in.P {
		inject[i], solve[i] = e.Inject(p), e.Solve(p)
	}
	out := map[string]any{"expected_r_inject": inject, "expected_r_solve": solve, "best_p_grid_0.001": nil, "best_value": nil}
	if p, value, ok := e.Best(1000); ok {
		out["best_p_grid_0.001"], out["best_value"] = p, value
	}
	return out, nil
}

// recorded is an environment that replays the recorded runs of a kit case.
type recorded struct {
	RepoFiles    []string                   `json:"repo_files"`
	TestFiles    []string                   `json:"test_files"`
	WeakenFiles  []string                   `json:"weaken_files"`
	ChangedFiles []string                   `json:"changed_files"`
	Original     json.RawMessage            `json:"original"`
	Buggy        json.RawMessage            `json:"buggy"`
	Weakened     json.RawMessage            `json:"weakened"`
	Inverse      map[string]json.RawMessage `json:"inverse"`
}

func (r *recorded) HasFile(_ context.Context, path string) (bool, error) {
	return slices.Contains(r.RepoFiles, path), nil
}

func (r *recorded) Run(_ context.Context, s ssr.State) (string, error) {
	switch s.Kind {
	case ssr.Original:
		return outputText(r.Original), nil
	case ssr.Buggy:
		return outputText(r.Buggy), nil
	case ssr.Weakened:
		return outputText(r.Weakened), nil
	}
	return outputText(r.Inverse[s.File]), nil
}

// outputText returns a recorded output as text: a string unchanged, another value as
// JSON.
func outputText(raw json.RawMessage) string {
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func ssrCheck(ctx context.Context, line []byte) (any, error) {
	var in struct {
		Settings ssr.Settings `json:"settings"`
		Artifact recorded     `json:"artifact"`
	}
	if err := pipe.Decode(line, &in); err != nil {
		return nil, err
	}
	facts := ssr.Facts{TestFiles: in.Artifact.TestFiles, WeakenFiles: in.Artifact.WeakenFiles, ChangedFiles: in.Artifact.ChangedFiles}
	verdict, err := ssr.Check(ctx, &in.Artifact, facts, in.Settings)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"first_failing_check": verdict.FirstFailing, "reason": verdict.Reason, "r_inject_if_invalid": nil, "checks": verdict.Checks}
	if !verdict.Valid() {
		out["r_inject_if_invalid"] = ssr.InvalidReward
	}
	return out, nil
}

package verbs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/turnpack/turnpack/internal/kit"
)

// rewardKit runs a kit file through a verb and passes every case with its answer to
// check.
func rewardKit(t *testing.T, verb, file string, check func(t *testing.T, in, out map[string]any)) {
	t.Helper()
	raw, err := os.ReadFile(kit.Dir(t, "conformance", file))
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := Main(context.Background(), []string{verb, "--errors=data"}, bytes.NewReader(raw), &stdout, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	ins := bufio.NewScanner(bytes.NewReader(raw))
	outs := bufio.NewScanner(&stdout)
	ins.Buffer(nil, 1<<24)
	outs.Buffer(nil, 1<<24)
	n := 0
	for ins.Scan() {
		if !outs.Scan() {
			t.Fatalf("no answer to case %d", n)
		}
		var in, out map[string]any
		if err := json.Unmarshal(ins.Bytes(), &in); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(outs.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		n++
		if in["id"] != out["id"] {
			t.Fatalf("case %v answered as %v", in["id"], out["id"])
		}
		check(t, in, out)
	}
	t.Logf("%s: %d cases", file, n)
}

// within reports whether nested lists and objects of numbers agree within tol·max(1,
// |want|).
func within(want, got any, tol float64) bool {
	switch w := want.(type) {
	case float64:
		g, ok := got.(float64)
		return ok && math.Abs(g-w) <= tol*math.Max(1, math.Abs(w))
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !within(w[i], g[i], tol) {
				return false
			}
		}
		return true
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for k := range w {
			if !within(w[k], g[k], tol) {
				return false
			}
		}
		return true
	}
	return want == got
}

func TestAdvantageKit(t *testing.T) {
	rewardKit(t, "advantage", "advantages/cases.jsonl", func(t *testing.T, in, out map[string]any) {
		tol := 1e-9
		if strings.HasPrefix(in["estimator"].(string), "nemo_grpo_") {
			for _, g := range in["groups"].([]any) {
				if f := g.(map[string]any)["family"]; f == "near7" || f == "near13" {
					tol = 1e-4
				}
			}
		}
		if !within(in["expected64"], out["expected"], tol) {
			t.Errorf("%s:\n want %.2000v\n got  %.2000v", in["id"], fmt.Sprint(in["expected64"]), fmt.Sprint(out))
		}
		if in["ill_conditioned"] == false && !within(in["expected"], out["expected"], 1e-3) {
			t.Errorf("%s: float32:\n want %.2000v\n got  %.2000v", in["id"], fmt.Sprint(in["expected"]), fmt.Sprint(out))
		}
	})
}

func TestWeightsKit(t *testing.T) {
	rewardKit(t, "weights", "advantages/loss_weights.jsonl", func(t *testing.T, in, out map[string]any) {
		if !within(in["weights"], out["weights"], 1e-9) {
			t.Errorf("%s:\n want %v\n got  %v", in["id"], in["weights"], out)
		}
	})
}

func TestShapingKit(t *testing.T) {
	for verb, files := range map[string][]string{
		"shape":  {"length", "truncation", "override_clip", "offpolicy"},
		"filter": {"group_filters"},
	} {
		for _, file := range files {
			rewardKit(t, verb, "shaping/"+file+".jsonl", func(t *testing.T, in, out map[string]any) {
				var got any = out
				if _, object := in["expected"].(map[string]any); !object {
					got = out["expected"]
				}
				if !within(in["expected"], got, 1e-9) {
					t.Errorf("%s:\n want %.1500v\n got  %.1500v", in["id"], fmt.Sprint(in["expected"]), fmt.Sprint(got))
				}
			})
		}
	}
}

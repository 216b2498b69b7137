// Package pivot implements "turnpack pivot score": rewards of single steps by comparison
// with the recorded step.
package pivot

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/reward/pivot"
	"github.com/turnpack/turnpack/rollout"
)

// Cmd is the command pivot.
type Cmd struct {
	Verb   string   `arg:"" help:"score." enum:"score"`
	Files  []string `arg:"" optional:"" name:"rollouts" help:"JSONL files; none or - reads standard input."`
	Out    string   `help:"File to write; none writes standard output." type:"path" placeholder:"FILE"`
	Force  bool     `help:"Replace a file that exists."`
	Server string   `help:"Verifier: swe_pivot (tool, target, similarity of arguments) or argument_comparison." enum:"swe_pivot,argument_comparison" default:"argument_comparison"`
	Mode   string   `help:"With swe_pivot: binary or continuous." enum:"binary,continuous" default:"binary"`
	Words  float64  `help:"With argument_comparison: least similarity of two strings, 0 to 0.5." default:"0" placeholder:"SHARE"`
}

// maxLine is the longest line accepted, in bytes. A line holds a whole conversation.
const maxLine = 1 << 28

// Help returns the long help text.
func (*Cmd) Help() string {
	return `pivot score compares the step that a model took with the step that was recorded, as the pivot stage of Nemotron 3 does, and writes every line again with its reward.

A line is a data row of NeMo-Gym with the model's answer: expected_action (or expected_answer, or metadata.expected_action) and response.output, or response_output. Its reward becomes "reward", what the verifier saw "pivot_score"; all else stays as it is. Lines that cannot be scored are listed and written without a reward, and the exit status is 1.`
}

func (c *Cmd) scorer() scorer {
	return scorer{Cmd: c, swe: pivot.SWE{Mode: c.Mode}, comparator: pivot.Comparator{WordThreshold: c.Words}}
}

// Faults reports flags that are invalid or contradict each other.
func (c *Cmd) Faults() error {
	var f faults.List
	switch swe := c.Server == "swe_pivot"; {
	case !(c.Words >= 0 && c.Words <= 0.5):
		f.Add("--words", "expected 0 to 0.5, found %v", c.Words)
	case swe && c.Words != 0:
		f.Add("--words", "does nothing with --server swe_pivot")
	case !swe && c.Mode != "binary":
		f.Add("--mode", "does nothing with --server argument_comparison")
	}
	return f.Err()
}

// Run scores all lines and writes them.
func (c *Cmd) Run(p *cli.Program) error {
	s := c.scorer()
	s.errOut = p.Err
	err := s.all(p.Ctx, p.In)
	if err != nil {
		return err
	}
	if s.scored+s.failed == 0 {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: strings.Join(s.names, ", ")}, "holds no line to score").WithFix("name the JSONL file of a run")
	}
	if c.Out == "" {
		_, err = p.Out.Write(s.lines.Bytes())
	} else {
		err = atomic.WriteFile(c.Out, s.lines.Bytes(), c.Force)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Err, "%d steps scored, mean reward %.4f, %d not scored\n", s.scored, s.sum/float64(max(1, s.scored)), s.failed)
	if s.failed > 0 {
		return &cli.ExitError{Code: cli.Failed}
	}
	return nil
}

type scorer struct {
	*Cmd
	swe            pivot.SWE
	comparator     pivot.Comparator
	errOut         io.Writer
	names          []string // of the inputs, as errors have them
	lines          bytes.Buffer
	scored, failed int
	sum            float64
}

func (s *scorer) all(ctx context.Context, in io.Reader) error {
	files := s.Files
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, path := range files {
		r, name := in, "standard input"
		if path != "-" {
			f, err := os.Open(path)
			if err != nil {
				return rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "cannot be read: %w", err)
			}
			defer f.Close()
			r, name = f, path
		}
		s.names = append(s.names, name)
		text := bufio.NewScanner(r)
		text.Buffer(nil, maxLine)
		for n := 1; text.Scan(); n++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			if len(bytes.TrimSpace(text.Bytes())) == 0 {
				continue
			}
			if err := s.line(text.Bytes(), rollout.Where{File: name, Line: n}); err != nil {
				return err
			}
		}
		if err := text.Err(); err != nil {
			return rollout.Errorf(rollout.KindFormat, rollout.Where{File: name}, "%w", err)
		}
	}
	return nil
}

// line scores one line. A line that is not a JSON object ends the run.
func (s *scorer) line(text []byte, where rollout.Where) error {
	row := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &row); err != nil {
		return rollout.Errorf(rollout.KindFormat, where, "no JSON object: %w", err)
	}
	delete(row, "reward")
	delete(row, "pivot_score")
	value, detail, err := s.score(text)
	if err != nil {
		s.failed++
		fmt.Fprintf(s.errOut, "turnpack: %v: %v\n", where, cli.Reason(err))
	} else {
		s.scored++
		s.sum += value
		if row["reward"], err = json.Marshal(value); err != nil {
			return err
		}
		if row["pivot_score"], err = json.Marshal(detail); err != nil {
			return err
		}
	}
	enc := json.NewEncoder(&s.lines)
	enc.SetEscapeHTML(false)
	return enc.Encode(row)
}

// score returns the reward of a line and the verifier's details.
func (s *scorer) score(text []byte) (float64, any, error) {
	var answer struct {
		Output   *[]pivot.OutputItem `json:"response_output"`
		Response *struct {
			Output []pivot.OutputItem `json:"output"`
		} `json:"response"`
		Metadata json.RawMessage
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return 0, nil, err
	}
	switch {
	case answer.Output == nil && answer.Response == nil:
		return 0, nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "response.output"}, "the line holds no answer of a model")
	case answer.Output == nil:
		answer.Output = &answer.Response.Output
	}
	var recorded pivot.RowMetadata
	if json.Unmarshal(answer.Metadata, &recorded) == nil && recorded.TextPrompt {
		*answer.Output = pivot.WithTextCalls(*answer.Output)
	}
	nothing := rollout.Errorf(rollout.KindInput, rollout.Where{Field: "expected_action"}, "the line says of no step what was expected")
	if s.Server == "swe_pivot" { // an expected step of the wrong shape gets reward 0 and is not an error
		var row pivot.Row
		if err := json.Unmarshal(text, &row); err != nil {
			return 0, nil, err
		}
		var inside map[string]json.RawMessage
		_ = json.Unmarshal(row.Metadata, &inside) // metadata that is no object holds none
		if row.ExpectedAction == nil && (row.ExpectedAnswer == nil || *row.ExpectedAnswer == "") && inside["expected_action"] == nil {
			return 0, nil, nothing // as in the rollouts that NeMo-Gym writes
		}
		got, err := s.swe.VerifyRow(row, *answer.Output)
		return got.Reward, got, err
	}
	var row struct {
		Expected *pivot.Action `json:"expected_action"`
	}
	if err := json.Unmarshal(text, &row); err != nil {
		return 0, nil, err
	}
	if row.Expected == nil {
		return 0, nil, nothing
	}
	got, err := s.comparator.Compare(*row.Expected, pivot.ActionOf(*answer.Output))
	return got.Reward, got, err
}

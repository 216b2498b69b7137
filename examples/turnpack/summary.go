package main

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/shape"
	"github.com/turnpack/turnpack/examples/turnpack/internal/show"
	"github.com/turnpack/turnpack/examples/turnpack/internal/step"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize"
)

// summary is printed at the end of a conversion.
type summary struct {
	tokenize.Report                  // its Rows and Trained are hidden by those below
	Window          ctxwindow.Report `json:"window,omitzero"`

	Read          int            `json:"records"`
	Rollouts      int            `json:"rollouts"`
	Groups        int            `json:"groups"`
	ZeroSpread    int            `json:"groups_zero_spread"`
	Singletons    int            `json:"groups_singleton"`
	Rows          int            `json:"rows"`
	Tokens        int64          `json:"tokens"`
	Trained       int64          `json:"trained_tokens"`
	Formats       map[string]int `json:"formats,omitempty"`
	Ignored       int            `json:"files_ignored"`
	Unread        int            `json:"files_unread"`
	UnreadKinds   map[string]int `json:"files_unread_by_kind,omitempty"`
	UnreadFiles   []string       `json:"files_unread_listed,omitempty"`
	Duplicates    int            `json:"duplicates"`
	Repeats       []string       `json:"duplicates_listed,omitempty"`
	Joined        int            `json:"rewards_joined,omitempty"`
	Unmatched     []string       `json:"unmatched_rewards,omitempty"`
	Unrewarded    []string       `json:"rollouts_without_reward,omitempty"`
	Status        map[string]int `json:"status"`
	Verdicts      map[string]int `json:"verdicts,omitempty"`
	WithoutRows   map[string]int `json:"rollouts_without_rows,omitempty"`
	WithoutRowsAt []skipLine     `json:"rollouts_without_rows_listed,omitempty"`
	MaskedRows    map[string]int `json:"masked_rows,omitempty"`
	Faults        map[string]int `json:"message_faults,omitempty"`
	OutOf         map[string]int `json:"out_of_statistics,omitempty"`
	OutOfAt       []skipLine     `json:"out_of_statistics_listed,omitempty"`
	Notes         map[string]int `json:"notes,omitempty"`
	LeftOut       int            `json:"records_left_out"`
	Skipped       []skipLine     `json:"skipped,omitempty"`
	Untrained     []skipLine     `json:"turns_with_unknown_context,omitempty"`
	LostColumns   []string       `json:"columns_left_out,omitempty"`
	LostWhy       []string       `json:"columns_left_out_why,omitempty"`
	Seconds       float64        `json:"seconds"`
	TokensPerSec  float64        `json:"tokens_per_second"`
	Output        string         `json:"output,omitempty"`
	// StepRollouts counts the rollouts of each step if files are steps.
	StepRollouts *step.Rollouts `json:"rollouts_per_step,omitempty"`
	// Batch, Judge and Shaping describe the whole batch.
	Batch   *shape.Batch    `json:"batch,omitempty"`
	Judge   *prm.Agreement  `json:"judge,omitempty"`
	Shaping *shaping.Report `json:"shaping,omitempty"`
	Target  map[string]int  `json:"target_left_out,omitempty"` // rollouts and rows
	// Unscored counts sampled tokens of steps without an advantage.
	Unscored int64 `json:"unscored_tokens,omitempty"`
	// Complete reports that an earlier run made the batch and this run did nothing.
	Complete bool `json:"already_complete,omitempty"`

	windowed bool // this run applied a context window, or rows are whole
	undated  bool // the template may write a date and none was given
	idsAlone bool // no model was given
	unfilled bool // a .pt file of slime is not filled up to a number of rollouts
}

type skipLine struct {
	Rollout string `json:"rollout,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Reason  string `json:"reason"`
	Error   string `json:"error,omitempty"`
}

func summarize(r turnpack.Report, took time.Duration, output string) *summary {
	s := &summary{
		Report: r.Encode, Window: r.Window,
		Read: r.Read, Rollouts: r.Rollouts, Groups: r.Groups, ZeroSpread: r.Reward.Constant, Singletons: r.Reward.Singletons,
		Rows: r.Rows, Tokens: r.Tokens, Trained: r.Trained, Unscored: r.Unscored, Status: r.Status, Verdicts: r.Verdicts, Notes: r.Notes,
		WithoutRows: r.WithoutRows, WithoutRowsAt: skipLines(r.WithoutRowsAt), MaskedRows: r.MaskedRows, Faults: r.Faults,
		OutOf: r.Reward.Excluded, OutOfAt: skipLines(r.OutOfStatistics), LeftOut: r.LeftOut, Skipped: skipLines(r.Skips), Untrained: skipLines(r.Untrained),
		Batch: shape.Of(&r.Overview), Judge: r.Judge, Seconds: took.Seconds(), Output: output,
	}
	for _, c := range droppedColumns(&r) {
		s.LostColumns, s.LostWhy = append(s.LostColumns, c.name), append(s.LostWhy, c.why())
	}
	if !reflect.DeepEqual(r.Shaping, shaping.Report{}) {
		s.Shaping = &r.Shaping
	}
	if took > 0 {
		s.TokensPerSec = float64(r.Tokens) / took.Seconds()
	}
	return s
}

// droppedColumn is a column that no row has because some turns lack it.
type droppedColumn struct {
	name string
	*turnpack.Dropped
}

func droppedColumns(r *turnpack.Report) []droppedColumn {
	var out []droppedColumn
	for _, c := range []droppedColumn{{col.Logprobs, r.DroppedLogprobs}, {col.Versions, r.DroppedVersions}} {
		if c.Dropped != nil {
			out = append(out, c)
		}
	}
	return out
}

func (c droppedColumn) why() string {
	return fmt.Sprintf("%s: %s of %s turns record none, the first: %s", c.name, cli.Number(c.Without), cli.Number(c.Turns), c.First)
}

// shown returns the first error of a record, with its file if the error names none.
func (k skipLine) shown() string {
	text := cli.FirstFault(k.Error)
	if k.File == "" || strings.Contains(text, k.File) {
		return text
	}
	return rollout.Where{File: k.File, Line: k.Line}.String() + ", " + text
}

func skipLines(skips []turnpack.Skip) []skipLine {
	var out []skipLine
	for _, k := range skips {
		line := skipLine{Rollout: k.Rollout, File: k.File, Line: k.Line, Reason: k.Reason}
		if k.Error != nil {
			line.Error = k.Error.Error()
		}
		out = append(out, line)
	}
	return out
}

// read adds what the dump reader skipped or joined.
func (s *summary) read(src *traj.Source, c *convertCmd) *summary {
	if s == nil {
		return nil
	}
	r := src.Report()
	s.windowed = c.Window != "none" || c.Mode == "whole"
	s.unfilled = c.Pt && c.RolloutsPerStep == 0
	s.Formats, s.Ignored, s.Duplicates = r.Formats, r.IgnoredCount, r.Duplicates
	s.Joined, s.Unmatched, s.Unrewarded = r.Joined, r.Unmatched, r.Unrewarded
	s.Unread, s.UnreadKinds = r.UnreadCount, r.UnreadKinds
	for _, x := range r.Unread {
		s.UnreadFiles = append(s.UnreadFiles, x.Path+": "+x.Why)
	}
	for _, x := range r.Repeats {
		s.Repeats = append(s.Repeats, fmt.Sprintf("%s equals %s", show.Place(x.This), show.Place(x.Of)))
	}
	return s
}

// maxListed is the number of skipped records that the table lists; --json has more.
const maxListed = 20

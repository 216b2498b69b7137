package ssr

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
)

// Settings are the thresholds of the checks. The paper publishes none, so all
// three must be set.
type Settings struct {
	MinPassingTests *int `json:"min_passing_tests"` // the original suite must have more tests than this
	MinChangedFiles *int `json:"min_changed_files"` // the bug must change at least as many files
	MinFailingTests *int `json:"min_failing_tests"` // the bug must break at least as many tests
}

// Validate reports every threshold that is missing or negative.
func (s Settings) Validate() error {
	var f faults.List
	for _, t := range []struct {
		name  string
		value *int
	}{{"min_passing_tests", s.MinPassingTests}, {"min_changed_files", s.MinChangedFiles}, {"min_failing_tests", s.MinFailingTests}} {
		switch {
		case t.value == nil:
			f.Join(rollout.Errorf(rollout.KindInput, rollout.Where{Field: t.name}, "expected a threshold, found none").
				WithFix("the paper publishes no value: choose one"))
		default:
			f.Count(t.name, *t.value)
		}
	}
	return f.Err()
}

// Facts holds the facts about an artifact that the checks use.
type Facts struct {
	TestFiles    []string // listed, in order
	WeakenFiles  []string // touched by the weakening patch
	ChangedFiles []string // touched by the bug or a failed attempt, in order
}

// StateKind is a kind of repository state in which the tests are run.
type StateKind string

// Values of StateKind. In all states but Weakened, the listed test files are the original ones.
const (
	Original StateKind = "original" // the unchanged repository
	Buggy    StateKind = "buggy"    // with the bug
	Weakened StateKind = "weakened" // with the bug and the weakened tests
	Inverse  StateKind = "inverse"  // with the bug, but one file restored
	Repaired StateKind = "repaired" // with the bug and a solver's patch
)

// State is a state of the repository.
type State struct {
	Kind StateKind
	File string // the restored file, for Inverse
	Fix  string // the solver's patch, for Repaired
}

// String returns the name of the state used in evidence.
func (s State) String() string {
	if s.File != "" {
		return string(s.Kind) + " " + s.File
	}
	return string(s.Kind)
}

// Env is a repository in which tests can be run.
type Env interface {
	// HasFile reports whether the original repository holds the file.
	HasFile(ctx context.Context, path string) (bool, error)
	// Run puts the repository into a state, runs the artifact's test script there and returns the
	// output of the artifact's parser. Any output is a result; an error means that the infrastructure
	// failed and that there is no verdict. Each run starts from the original repository.
	Run(ctx context.Context, state State) (parserOutput string, err error)
}

// CheckResult is the outcome of one check.
type CheckResult struct {
	Number int    `json:"number"` // 1 to 7
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason"` // "" when OK
	// Evidence lists the observations of the check, in sentences.
	Evidence []string `json:"evidence"`
}

// Verdict is the outcome of all checks that were run.
type Verdict struct {
	// Malformed is the reason why the artifact could not be checked, nil if it was checked. Only
	// [Judge] sets it.
	Malformed error
	// FirstFailing is the number of the check that failed, 0 if none did. Later
	// checks are not run.
	FirstFailing int
	Reason       string
	Checks       []CheckResult
	// Broken lists the tests that the bug broke, sorted; nil before check 5.
	Broken []string
}

// Valid reports whether every check passed.
func (v Verdict) Valid() bool { return v.FirstFailing == 0 && v.Malformed == nil }

var checkNames = [...]string{"", "test files exist", "parser is valid", "original tests pass", "bug scope", "bug breaks tests", "weakening hides the bug", "every file matters"}

// Check runs the seven consistency checks in their fixed order and stops at the first that fails. An
// error concerns the settings (kind input) or the environment (with its own kind) and means that the
// artifact has not been judged.
func Check(ctx context.Context, env Env, facts Facts, settings Settings) (Verdict, error) {
	if err := settings.Validate(); err != nil {
		return Verdict{}, err
	}
	c := checker{ctx: ctx, env: env, facts: facts, settings: settings}
	for _, check := range [...]func() error{c.files, c.parser, c.originalRun, c.scope, c.bug, c.weakening, c.inverse} {
		c.current = CheckResult{Number: len(c.verdict.Checks) + 1}
		c.current.Name = checkNames[c.current.Number]
		if err := check(); err != nil {
			return Verdict{}, notJudged(c.current, err)
		}
		c.current.OK = c.current.Reason == ""
		c.verdict.Checks = append(c.verdict.Checks, c.current)
		if !c.current.OK {
			c.verdict.FirstFailing, c.verdict.Reason = c.current.Number, c.current.Reason
			break
		}
	}
	return c.verdict, nil
}

// notJudged returns a failure of the environment with the kind scorer, unless err has a kind already.
func notJudged(at CheckResult, err error) error {
	if e, ok := errors.AsType[*rollout.Error](err); ok {
		return e
	}
	return rollout.Errorf(rollout.KindScorer, rollout.Where{}, "check %d (%s): the environment failed: %w", at.Number, at.Name, err).
		WithFix("run the checks again: the artifact has not been judged")
}

type checker struct {
	ctx      context.Context
	env      Env
	facts    Facts
	settings Settings
	verdict  Verdict
	current  CheckResult
	original Results
}

func (c *checker) addEvidence(format string, args ...any) {
	c.current.Evidence = append(c.current.Evidence, fmt.Sprintf(format, args...))
}

func (c *checker) fail(reason string) {
	if c.current.Reason == "" {
		c.current.Reason = reason
	}
}

func (c *checker) files() error {
	if len(c.facts.TestFiles) == 0 {
		c.addEvidence("no test file is listed")
		c.fail("test_file_missing")
	}
	for _, name := range c.facts.TestFiles {
		there, err := c.env.HasFile(c.ctx, name)
		if err != nil {
			return err
		}
		if !there {
			c.addEvidence("%s is listed and not in the repository", name)
			c.fail("test_file_missing")
		}
	}
	listed := setOf(c.facts.TestFiles)
	for _, name := range c.facts.WeakenFiles {
		if !listed[name] {
			c.addEvidence("the weakening patch touches %s, which is not listed", name)
			c.fail("weaken_touches_other_file")
		}
	}
	if c.current.Reason == "" {
		c.addEvidence("%d test files listed, %d of them weakened", len(c.facts.TestFiles), len(c.facts.WeakenFiles))
	}
	return nil
}

func (c *checker) parser() error {
	output, err := c.env.Run(c.ctx, State{Kind: Original})
	if err != nil {
		return err
	}
	results, reason := ParseResults(output)
	if reason != "" {
		c.addEvidence("the parser answered %.120q", output)
		c.fail(reason)
		return nil
	}
	c.original = results
	c.addEvidence("%d tests", len(results))
	return nil
}

func (c *checker) originalRun() error {
	for _, test := range c.original.tests() {
		if !c.original.passing(test) {
			c.addEvidence("%s fails in the original repository", test)
			c.fail("original_test_fails")
		}
	}
	c.addEvidence("%d tests, more than %d are needed", len(c.original), *c.settings.MinPassingTests)
	if len(c.original) <= *c.settings.MinPassingTests {
		c.fail("too_few_passing")
	}
	return nil
}

func (c *checker) scope() error {
	c.addEvidence("the bug changes %d files, at least %d are needed", len(c.facts.ChangedFiles), *c.settings.MinChangedFiles)
	if len(c.facts.ChangedFiles) < *c.settings.MinChangedFiles {
		c.fail("too_few_files")
	}
	return nil
}

// run returns the results in a state. Output that is not a map counts as a run in which no test
// passed, since a bug can prevent the suite from starting.
func (c *checker) run(state State) (Results, error) {
	output, err := c.env.Run(c.ctx, state)
	if err != nil {
		return nil, err
	}
	results, reason := looseResults(output)
	if reason != "" {
		c.addEvidence("%s: the parser answered %.120q, so no test passes", state, output)
	}
	return results, nil
}

func (c *checker) bug() error {
	results, err := c.run(State{Kind: Buggy})
	if err != nil {
		return err
	}
	c.verdict.Broken = []string{}
	for _, test := range c.original.tests() {
		if c.original.passing(test) && !results.passing(test) {
			c.verdict.Broken = append(c.verdict.Broken, test)
		}
	}
	c.addEvidence("%d tests pass no more, at least %d are needed", len(c.verdict.Broken), *c.settings.MinFailingTests)
	if len(c.verdict.Broken) < *c.settings.MinFailingTests {
		c.fail("too_few_failing")
	}
	return nil
}

// brokenTestsPassing returns the broken tests that pass in results.
func (c *checker) brokenTestsPassing(results Results) []string {
	var tests []string
	for _, test := range c.verdict.Broken {
		if results.passing(test) {
			tests = append(tests, test)
		}
	}
	return tests
}

func (c *checker) weakening() error {
	results, err := c.run(State{Kind: Weakened})
	if err != nil {
		return err
	}
	revived := c.brokenTestsPassing(results)
	c.addEvidence("%d of %d broken tests pass when weakened", len(revived), len(c.verdict.Broken))
	if len(revived) == 0 {
		c.fail("weakening_hides_nothing")
	}
	return nil
}

func (c *checker) inverse() error {
	for _, name := range c.facts.ChangedFiles {
		results, err := c.run(State{Kind: Inverse, File: name})
		if err != nil {
			return err
		}
		revived := c.brokenTestsPassing(results)
		if len(revived) == 0 {
			c.addEvidence("taking back %s alone repairs no broken test", name)
			c.fail(name)
			return nil
		}
		c.addEvidence("taking back %s alone repairs %d broken tests", name, len(revived))
	}
	return nil
}

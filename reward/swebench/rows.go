package swebench

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/reward/swebench/internal/logparse"
	"github.com/turnpack/turnpack/rollout"
)

// Instance holds the fields of a SWE-bench, SWE-Gym or SWE-rebench row that grading and patch checks
// use.
type Instance struct {
	InstanceID       string
	Repo             string
	BaseCommit       string
	Version          string
	ProblemStatement string
	Patch            string // the reference solution
	TestPatch        string // the tests that belong to it
	FailToPass       []string
	PassToPass       []string
	LogParser        string // "" if the row names no parser
	EvalType         string
	EvalScript       string
	Image            string
}

// Parsers returns the names of the log parsers, sorted.
func Parsers() []string { return logparse.Names() }

// Spec returns the grading spec of the instance. For a row without a log parser or an evaluation type,
// it uses those of the reference for the repository.
func (in Instance) Spec() (Spec, error) {
	s := Spec{
		InstanceID: in.InstanceID, Version: in.Version, Parser: in.LogParser, EvalType: in.EvalType,
		FailToPass: in.FailToPass, PassToPass: in.PassToPass, unmarked: logparse.Gym(in.Repo),
	}
	if s.Parser == "" {
		name, ok := logparse.ForRepo(in.Repo)
		if !ok {
			return Spec{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "log_parser"}, "instance %q names no log parser and none is known for repository %q", in.InstanceID, in.Repo).
				WithFix("set LogParser to one of swebench.Parsers()")
		}
		s.Parser = name
	}
	if s.EvalType == "" {
		s.EvalType = passAndFail
		if logparse.FailOnly(in.Repo) {
			s.EvalType = failOnly
		}
	}
	return s, s.validate()
}

// UnmarshalJSON reads a row. The test lists may be JSON lists or strings that hold a JSON list, under
// upper-case or lower-case names; SWE-rebench stores the parser in install_config.
func (in *Instance) UnmarshalJSON(data []byte) error {
	var row struct {
		InstanceID       string          `json:"instance_id"`
		Repo             string          `json:"repo"`
		BaseCommit       string          `json:"base_commit"`
		Version          json.RawMessage `json:"version"`
		ProblemStatement string          `json:"problem_statement"`
		Patch            string          `json:"patch"`
		TestPatch        string          `json:"test_patch"`
		FailToPass       json.RawMessage `json:"FAIL_TO_PASS"` // keys match in any case
		PassToPass       json.RawMessage `json:"PASS_TO_PASS"`
		LogParser        string          `json:"log_parser"`
		EvalType         string          `json:"eval_type"`
		EvalScript       string          `json:"eval_script"`
		Image            string          `json:"image"`
		ImageName        string          `json:"image_name"`
		DockerImage      string          `json:"docker_image"`
		InstallConfig    *struct {
			LogParser string `json:"log_parser"`
		} `json:"install_config"`
	}
	if err := json.Unmarshal(data, &row); err != nil {
		return jsonError("an instance row is an object", err)
	}
	if row.InstanceID == "" {
		return rollout.Errorf(rollout.KindFormat, rollout.Where{Field: "instance_id"}, "expected an instance id, found none")
	}
	*in = Instance{
		InstanceID: row.InstanceID, Repo: row.Repo, BaseCommit: row.BaseCommit,
		ProblemStatement: row.ProblemStatement, Patch: row.Patch, TestPatch: row.TestPatch,
		LogParser: row.LogParser, EvalType: row.EvalType, EvalScript: row.EvalScript,
		Image: cmp.Or(row.Image, row.ImageName, row.DockerImage),
	}
	if in.LogParser == "" && row.InstallConfig != nil {
		in.LogParser = row.InstallConfig.LogParser
	}
	// A version is a string in all published rows; a number keeps its literal form.
	if v := bytes.TrimSpace(row.Version); len(v) > 0 && !bytes.Equal(v, []byte("null")) {
		if err := json.Unmarshal(v, &in.Version); err != nil {
			in.Version = string(v)
		}
	}
	var err error
	if in.FailToPass, err = testList(row.FailToPass, "FAIL_TO_PASS"); err != nil {
		return err
	}
	in.PassToPass, err = testList(row.PassToPass, "PASS_TO_PASS")
	return err
}

// testList reads a list of test ids, or a string that holds one.
func testList(raw json.RawMessage, field string) ([]string, error) {
	where := rollout.Where{Field: field}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil, rollout.Errorf(rollout.KindFormat, where, "expected a list of test ids, found none").
			WithFix("an instance without such tests has the empty list []")
	}
	if raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, rollout.Errorf(rollout.KindFormat, where, "%w", err)
		}
		raw = []byte(text)
	}
	var tests []*string
	if err := json.Unmarshal(raw, &tests); err != nil {
		return nil, rollout.Errorf(rollout.KindFormat, where, "expected a JSON list of test ids or a string with one, found %.60q: %w", raw, err)
	}
	list := make([]string, len(tests))
	for i, t := range tests {
		if t == nil {
			return nil, rollout.Errorf(rollout.KindFormat, where, "test %d is null", i)
		}
		list[i] = *t
	}
	return list, nil
}

// Prediction is one model answer.
type Prediction struct {
	InstanceID string  `json:"instance_id"`
	Model      string  `json:"model_name_or_path"`
	Patch      *string `json:"model_patch"` // nil = the model gave no patch
}

// UnmarshalJSON reads a prediction, which must have an instance id.
func (p *Prediction) UnmarshalJSON(data []byte) error {
	type plain Prediction
	var v plain
	if err := json.Unmarshal(data, &v); err != nil {
		return jsonError("a prediction is an object", err)
	}
	if v.InstanceID == "" {
		return rollout.Errorf(rollout.KindFormat, rollout.Where{Field: "instance_id"}, "expected the instance id of a prediction, found none")
	}
	*p = Prediction(v)
	return nil
}

// ReadInstances reads rows from JSONL or from one JSON list.
func ReadInstances(r io.Reader) ([]Instance, error) { return readRows[Instance](r, false) }

// ReadPredictions reads predictions from JSONL, from one JSON list, or from an
// object {instance_id: prediction}, whose file order is kept.
func ReadPredictions(r io.Reader) ([]Prediction, error) { return readRows[Prediction](r, true) }

// maxRowsBytes is the size limit of a data file, which is read into memory.
const maxRowsBytes = 4 << 30

func jsonError(expected string, err error) error {
	if e, ok := errors.AsType[*rollout.Error](err); ok {
		return e
	}
	return rollout.Errorf(rollout.KindFormat, rollout.Where{}, "%s: %w", expected, err)
}

func readRows[T any](r io.Reader, keyed bool) ([]T, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxRowsBytes+1))
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "%w", err)
	}
	if len(data) > maxRowsBytes {
		return nil, rollout.Errorf(rollout.KindLimit, rollout.Where{}, "the file is larger than %d bytes", maxRowsBytes)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // written by editors and shells of Windows
	body := bytes.TrimSpace(data)
	if len(body) > 0 && body[0] == '[' {
		return readList[T](body)
	}
	if keyed {
		if rows, ok, err := readKeyed[T](body); ok {
			return rows, err
		}
	}
	var rows []T
	lines := bufio.NewReader(bytes.NewReader(data))
	for n := 1; ; n++ {
		line, rerr := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var row T
			if err := json.Unmarshal(line, &row); err != nil {
				return nil, rollout.In(jsonError("expected one row a line", err), rollout.Where{Line: n})
			}
			rows = append(rows, row)
		}
		if rerr != nil {
			return rows, nil
		}
	}
}

// inMember returns err with its place inside a member of the file.
func inMember(err error, name string) error {
	located, ok := errors.AsType[*rollout.Error](err)
	if !ok {
		return err
	}
	c := *located
	c.Where.Field = strings.TrimSuffix("/"+name+"/"+c.Where.Field, "/")
	return &c
}

// readList reads a JSON list of rows.
func readList[T any](body []byte) ([]T, error) {
	const expected = "expected a list of rows"
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, err := dec.Token(); err != nil {
		return nil, jsonError(expected, err)
	}
	var rows []T
	for dec.More() {
		var row T
		if err := dec.Decode(&row); err != nil {
			return nil, inMember(jsonError(expected, err), strconv.Itoa(len(rows)))
		}
		rows = append(rows, row)
	}
	if _, err := dec.Token(); err != nil {
		return nil, jsonError(expected, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, jsonError(expected, errors.New("found text after the list"))
	}
	return rows, nil
}

// readKeyed reads an object of objects. ok is false if the data has another form, such as one JSONL
// row.
func readKeyed[T any](body []byte) (rows []T, ok bool, err error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false, nil
	}
	var names []string
	var values []json.RawMessage
	for dec.More() {
		key, err := dec.Token()
		var value json.RawMessage
		if err == nil {
			err = dec.Decode(&value)
		}
		if err != nil || value[0] != '{' {
			return nil, false, nil
		}
		name, _ := key.(string)
		names, values = append(names, name), append(values, value)
	}
	if _, err := dec.Token(); err != nil || dec.More() {
		return nil, false, nil
	}
	for i, name := range names {
		var row T
		if err := json.Unmarshal(values[i], &row); err != nil {
			return nil, true, inMember(jsonError("expected a prediction", err), name)
		}
		rows = append(rows, row)
	}
	return rows, true, nil
}

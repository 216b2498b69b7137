package swebench

import (
	"encoding/json"
	"io"
	"slices"
)

// Report is one instance's entry in the official report.json.
type Report struct {
	PatchIsNone        bool        `json:"patch_is_None"`
	PatchExists        bool        `json:"patch_exists"`
	PatchApplied       bool        `json:"patch_successfully_applied"` // actual meaning: the log is a run
	Resolved           bool        `json:"resolved"`
	InfraFailure       bool        `json:"infra_failure"`
	InfraFailureReason string      `json:"infra_failure_reason,omitempty"`
	Tests              *TestReport `json:"tests_status,omitempty"`
}

// TestReport lists the judged tests. The last two lists are always empty in
// reports of the reference.
type TestReport struct {
	FailToPass Outcome `json:"FAIL_TO_PASS"`
	PassToPass Outcome `json:"PASS_TO_PASS"`
	FailToFail Outcome `json:"FAIL_TO_FAIL"`
	PassToFail Outcome `json:"PASS_TO_FAIL"`
}

// WriteReports writes a report.json, instance id → report, indented by four as in the reference and
// sorted by instance id.
func WriteReports(w io.Writer, reports map[string]Report) error { return writeIndented(w, reports) }

func writeIndented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "    ")
	return enc.Encode(v)
}

// Summary is the official report of a whole run (schema version 2).
type Summary struct {
	Total             int               `json:"total_instances"`
	Submitted         int               `json:"submitted_instances"`
	Completed         int               `json:"completed_instances"`
	Resolved          int               `json:"resolved_instances"`
	Unresolved        int               `json:"unresolved_instances"`
	InfraFailures     int               `json:"infra_failure_instances"`
	AmbiguousFailures int               `json:"ambiguous_failure_instances"`
	EmptyPatches      int               `json:"empty_patch_instances"`
	Errors            int               `json:"error_instances"`
	CompletedIDs      []string          `json:"completed_ids"`
	IncompleteIDs     []string          `json:"incomplete_ids"`
	EmptyPatchIDs     []string          `json:"empty_patch_ids"`
	SubmittedIDs      []string          `json:"submitted_ids"`
	ResolvedIDs       []string          `json:"resolved_ids"`
	UnresolvedIDs     []string          `json:"unresolved_ids"`
	InfraFailureIDs   []string          `json:"infra_failure_ids"`
	AmbiguousIDs      []string          `json:"ambiguous_failure_ids"`
	FailureReasons    map[string]string `json:"failure_reasons"`
	ErrorIDs          []string          `json:"error_ids"`
	SchemaVersion     int               `json:"schema_version"`
}

// Summarize returns the summary of a run over instances. Instances without a prediction are
// incomplete, those with a missing or empty patch are empty patches, and those without a report are
// errors. logs returns the test log of an instance, "" if there is none, to detect infrastructure
// failures of instances that are not resolved; nil means no logs.
func Summarize(instances []Instance, predictions []Prediction, reports map[string]Report, logs func(id string) string) Summary {
	byID := make(map[string]Prediction, len(predictions))
	for _, p := range predictions {
		byID[p.InstanceID] = p
	}
	s := Summary{Total: len(instances), Submitted: len(byID), FailureReasons: map[string]string{}, SchemaVersion: 2}
	for id := range byID {
		s.SubmittedIDs = append(s.SubmittedIDs, id)
	}
	for _, in := range instances {
		p, ok := byID[in.InstanceID]
		report, ran := reports[in.InstanceID]
		switch {
		case !ok:
			s.IncompleteIDs = append(s.IncompleteIDs, in.InstanceID)
			continue
		case p.Patch == nil || *p.Patch == "":
			s.EmptyPatchIDs = append(s.EmptyPatchIDs, in.InstanceID)
			continue
		case !ran:
			s.ErrorIDs = append(s.ErrorIDs, in.InstanceID)
		default:
			s.CompletedIDs = append(s.CompletedIDs, in.InstanceID)
			if report.Resolved {
				s.ResolvedIDs = append(s.ResolvedIDs, in.InstanceID)
				continue
			}
			s.UnresolvedIDs = append(s.UnresolvedIDs, in.InstanceID)
		}
		if logs == nil {
			continue
		}
		if sign, broken := classifyInfra(logs(in.InstanceID)); broken {
			s.FailureReasons[in.InstanceID] = sign.reason
			if sign.certain {
				s.InfraFailureIDs = append(s.InfraFailureIDs, in.InstanceID)
			} else {
				s.AmbiguousIDs = append(s.AmbiguousIDs, in.InstanceID)
			}
		}
	}
	for _, l := range []struct {
		ids   *[]string
		count *int
	}{
		{&s.CompletedIDs, &s.Completed}, {&s.IncompleteIDs, nil}, {&s.EmptyPatchIDs, &s.EmptyPatches}, {&s.SubmittedIDs, nil},
		{&s.ResolvedIDs, &s.Resolved}, {&s.UnresolvedIDs, &s.Unresolved}, {&s.InfraFailureIDs, &s.InfraFailures},
		{&s.AmbiguousIDs, &s.AmbiguousFailures}, {&s.ErrorIDs, &s.Errors},
	} {
		slices.Sort(*l.ids)
		*l.ids = append([]string{}, slices.Compact(*l.ids)...) // [] for none
		if l.count != nil {
			*l.count = len(*l.ids)
		}
	}
	return s
}

// Write writes the summary in the reference's format.
func (s Summary) Write(w io.Writer) error { return writeIndented(w, s) }

package pivot

import (
	"bytes"
	"encoding/json"

	"github.com/turnpack/turnpack/rollout"
)

// Row holds the expected step of a swe_pivot data row. It is read from the first of three places that
// holds it: expected_action, expected_answer (text holding the same object), metadata.expected_action.
type Row struct {
	ExpectedAction json.RawMessage `json:"expected_action"`
	ExpectedAnswer *string         `json:"expected_answer"`
	Metadata       json.RawMessage `json:"metadata"`
}

// expected returns the expected call, or nil when no place holds a function_call. A function_call
// whose name is missing or not a string is an error of kind format, except in expected_answer, where
// the search continues.
func (r Row) expected() (*Call, error) {
	if c, err := expectedCall(r.ExpectedAction); c != nil || err != nil {
		return c, err
	}
	if r.ExpectedAnswer != nil {
		if c, err := expectedCall(json.RawMessage(*r.ExpectedAnswer)); c != nil && err == nil {
			return c, nil
		}
	}
	if isObject(r.Metadata) {
		var metadata map[string]json.RawMessage
		if json.Unmarshal(r.Metadata, &metadata) == nil {
			return expectedCall(metadata["expected_action"])
		}
	}
	return nil, nil
}

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{'
}

func expectedCall(raw json.RawMessage) (*Call, error) {
	if !isObject(raw) {
		return nil, nil
	}
	var action map[string]json.RawMessage
	if json.Unmarshal(raw, &action) != nil {
		return nil, nil
	}
	var kind string
	if json.Unmarshal(action["type"], &kind) != nil || kind != oneCall {
		return nil, nil
	}
	var name *string
	if err := json.Unmarshal(action["name"], &name); err != nil || name == nil {
		return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{Field: "name"}, "a function_call must have a name that is text")
	}
	return &Call{*name, argumentText(action["arguments"])}, nil
}

// VerifyRow scores a model answer against a data row. Only the first call of
// the answer counts. A row whose expected call has no name scores 0 with
// failureUnknown.
func (v SWE) VerifyRow(row Row, output []OutputItem) (Score, error) {
	if err := v.Validate(); err != nil {
		return Score{}, err
	}
	expected, err := row.expected()
	if err != nil {
		return Score{Failure: failureUnknown}, nil
	}
	for _, item := range output {
		if item.Type == oneCall {
			return v.Verify(expected, &Call{item.Name, item.Arguments})
		}
	}
	return v.Verify(expected, nil)
}

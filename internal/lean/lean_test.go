package lean_test

import (
	"encoding/json"
	"io"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/lean"
	"github.com/turnpack/turnpack/rollout"
)

type inner struct {
	Turns int            `json:"turns"`
	By    map[string]int `json:"by"`
}

type outer struct {
	inner
	Inner  inner
	Status rollout.Status
	Names  []string `json:"names,omitempty"`
	Error  error    `json:"-"`
	Value  *float64
	Ok     bool
	Floats [1]float64
	Big    float64
}

func TestAppend(t *testing.T) {
	zero := 0.0
	for _, one := range []outer{
		{},
		{inner: inner{Turns: -3}, Inner: inner{By: map[string]int{"a\"b": 1}}},
		{Inner: inner{Turns: 1 << 40}, Status: rollout.StatusTruncated, Names: []string{"", "<&>\n"}, Value: &zero, Ok: true, Big: -1.5e300, Floats: [1]float64{1}},
	} {
		text, err := lean.Append([]byte("{"), reflect.ValueOf(&one).Elem())
		require.NoError(t, err)
		require.Equal(t, "{", string(text[:1]), "what was there stays")
		var got outer
		require.NoError(t, json.Unmarshal(text[1:], &got))
		require.Equal(t, one, got, "%s", text)
		whole, err := json.Marshal(one)
		require.NoError(t, err)
		require.Less(t, len(text), len(whole)+2)
	}
	for _, none := range []outer{{}, {inner: inner{By: map[string]int{}}, Names: []string{}, Error: io.EOF}} {
		text, err := lean.Append(nil, reflect.ValueOf(&none).Elem())
		require.NoError(t, err)
		require.Equal(t, "{}", string(text))
	}
	for _, bad := range []any{struct{ F func() }{func() {}}, struct{ F float64 }{math.NaN()}} {
		_, err := lean.Append(nil, reflect.ValueOf(bad))
		require.Error(t, err)
	}
}

package strictjson_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/strictjson"
	"github.com/turnpack/turnpack/rollout"
)

type request struct {
	Group  string                     `json:"group"`
	Solved *bool                      `json:"solved,omitempty"`
	Reward *float64                   `json:"reward,omitempty"`
	Seq    int32                      `json:"seq"`
	More   map[string]json.RawMessage `json:"more"`
}

func TestDecode(t *testing.T) {
	var got request
	require.NoError(t, strictjson.Decode([]byte(` {"group": "a", "solved": null, "reward": -1.5e0, "seq": 7, "more": {"a": 1, "a": [2]}} `+"\n"), &got))
	require.Equal(t, "a", got.Group)
	require.Equal(t, -1.5, *got.Reward)
	require.Nil(t, got.Solved)
	values := map[string]any{}
	require.NoError(t, strictjson.Decode([]byte(`{"any": 1}`), &values))

	for text, why := range map[string]string{
		``:                           "empty, expected a JSON object",
		`null`:                       "no JSON object",
		`[{}]`:                       "no JSON object",
		`{"group": "a"} {}`:          "something follows",
		`{"group": "a"}x`:            "something follows",
		`{"seq": 1, "seq": 2}`:       "seq: stands there twice",
		`{"rewrad": 1}`:              "rewrad: is unknown, expected group, more, reward, seq, solved",
		`{"Reward": 1}`:              "Reward: is unknown",
		`{"reward": "0.5"}`:          "reward: found string, expected a number of 64 bits",
		`{"reward": true}`:           "reward: found bool",
		`{"reward": 1e400}`:          "reward: found number 1e400",
		`{"reward": NaN}`:            "leave the key out",
		`{"reward": -Infinity}`:      "leave the key out",
		`{"solved": 1}`:              "solved: found number, expected true or false",
		`{"seq": 1.5}`:               "seq: found number 1.5, expected a whole number of 32 bits",
		`{"group": 7}`:               "group: found number, expected a text",
		`{"more": []}`:               "more: found array, expected an object",
		`{"group": "a"`:              "no JSON: ",
		`{"group": "a",}`:            "no JSON: ",
		"{\"group\": \"\x00\"}":      "no JSON: ",
		`{"group": "a", "reward": }`: "no JSON: ",
	} {
		err := strictjson.Decode([]byte(text), new(request))
		require.ErrorContains(t, err, why, text)
		require.ErrorIs(t, err, rollout.KindInput, text)
	}
}

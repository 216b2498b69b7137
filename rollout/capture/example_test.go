package capture_test

import (
	"fmt"

	"github.com/turnpack/turnpack/rollout/capture"
)

// The engine counted three tokens and two ids arrived: the turn is not what was sampled, and must not be
// trained.
func ExampleDecode_incomplete() {
	tokens, err := capture.Decode([]byte(`{
		"choices": [{"token_ids": [7, 8]}],
		"usage": {"completion_tokens": 3}}`))
	fmt.Println(tokens.Incomplete, err)
	// Output: usage counts 3 completion tokens, 2 ids are recorded <nil>
}

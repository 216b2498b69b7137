package main

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A recorded call holds its rollout and nothing that read it.
func TestCallsLeaveNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for i := range 200 {
		_, err := readCall(fmt.Appendf(nil, `{"messages":[{"role":"user","content":%q}]}`, strings.Repeat("q", 1000)),
			fmt.Appendf(nil, `{"id":"%d","prompt_token_ids":[1],"choices":[{"message":{"role":"assistant","content":"a"},"token_ids":[2],"logprobs":{"content":[{"token":"a","logprob":-1}]}}]}`, i))
		require.NoError(t, err)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	require.Less(t, m.HeapAlloc, uint64(64<<20), "a reader that is not closed holds 350 KB")
	require.LessOrEqual(t, runtime.NumGoroutine(), before+1)
}

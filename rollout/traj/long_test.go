package traj_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

// longChat is a record of n messages of 4 KB, written over many lines.
func longChat(n int) []byte {
	content, _ := json.Marshal(strings.Repeat("def f(x):\n\treturn \"é\"\n", 180))
	var b bytes.Buffer
	b.WriteString("{\"messages\":[\n")
	for i := range n {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `{"role":"%s","content":%s}`, []string{"user", "assistant"}[i%2], content)
	}
	b.WriteString("\n]}\n")
	return b.Bytes()
}

func TestFaultsOfLongRecords(t *testing.T) {
	kit.OneGoroutine(t)
	whole := string(longChat(40))
	at := strings.LastIndex(whole, "def f")
	for _, c := range []struct {
		reason, text string
		limit        int
		kind         error
		says         string
	}{
		{"a control character in a string", whole[:at] + "\x01" + whole[at+1:], 0, rollout.KindFormat, fmt.Sprintf("byte %d: not JSON: control byte 0x01", at)},
		{"invalid UTF-8 in one", whole[:at] + "\xff" + whole[at+1:], 0, rollout.KindFormat, "not valid UTF-8"},
		{"an escape that does not exist", whole[:at] + `\x` + whole[at+2:], 0, rollout.KindFormat, "unknown escape"},
		{"the end inside a string", whole[:at], 0, rollout.KindFormat, "cut off"},
		{"a fault after strings", strings.TrimSuffix(whole, "]}\n") + "?]}", 0, rollout.KindFormat, fmt.Sprintf("byte %d: not JSON", len(whole)-3)},
		{"longer than allowed", whole, 100_000, rollout.KindLimit, "raise Limits.ValueBytes"},
	} {
		opt := stop
		opt.Limits.ValueBytes = c.limit
		_, _, err := read(t, "x.json", c.text, opt)
		require.ErrorIs(t, err, c.kind, c.reason)
		require.ErrorContains(t, err, c.says, c.reason)
		require.ErrorContains(t, err, "x.json", c.reason)
	}
	for n := 3; n < len(whole)-2; n += 997 {
		_, _, err := read(t, "x.json", whole[:n], stop)
		require.Error(t, err, "the first %d bytes", n)
	}
}

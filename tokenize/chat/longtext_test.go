package chat

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// A long message costs little more than one byte of new memory for each of its bytes, and up to two more if the
// template captures or concatenates it.
func TestLongTextsAreWrittenOnce(t *testing.T) {
	kit.OneGoroutine(t)
	const size = 8 << 20
	m := func(role, text string) Value {
		return Object(Member{"role", String(role)}, Member{"content", String(text)})
	}
	text := strings.Repeat("a line of text\n", size/15)
	c, err := NewConversation(List(m("user", "hello"), m("assistant", text), m("user", "go on")), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	written := 0
	for name, tmpl := range kitTemplates(t) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := tmpl.Render(t.Context(), c, Input{Now: kit.TemplateClock})
		runtime.ReadMemStats(&after)
		if err != nil || len(r.Text) < size/2 {
			continue
		}
		made := float64(after.TotalAlloc-before.TotalAlloc) / size
		t.Logf("%5.2f bytes a byte: %s", made, name)
		require.Less(t, made, 3.5, name)
		written++
	}
	require.Greater(t, written, 40)
}

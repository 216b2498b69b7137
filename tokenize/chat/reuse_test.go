package chat

import (
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// A rendering that reuses the memory of any earlier result gives the same result.
func TestReuseChangesNothingButMemory(t *testing.T) {
	convs := kit.TemplateConversations(t)
	reused, i, k := 0, 0, 0
	for _, tmpl := range kitTemplates(t) {
		if k++; k%8 != 1 {
			continue
		}
		var spent *Result
		for _, kc := range convs {
			i++
			c := prepared(t, kc, i%5 == 0)
			in := Input{AddGenerationPrompt: i%3 != 0, Now: kit.TemplateClock}
			want, wantErr := tmpl.Render(t.Context(), c, in)
			in.Reuse = spent
			got, err := tmpl.Render(t.Context(), c, in)
			spent = got
			if !sameResult(t, want, got, wantErr, err) || in.Reuse == nil {
				continue
			}
			if unsafe.StringData(in.Reuse.Text) == unsafe.StringData(got.Text) {
				reused++
			}
		}
	}
	require.Greater(t, reused, 100)
}

// A result that was not passed to Reuse is unaffected by later renderings of the template.
func TestLaterRenderingsLeaveResultsAlone(t *testing.T) {
	long, short := agentConversation(t), agentConversation(t).Prefix(40)
	for _, name := range []string{"qwen3", "llama3_1", "gptoss"} {
		tmpl := kitTemplate(t, name)
		in := Input{Now: kit.TemplateClock}
		spare, err := tmpl.Render(t.Context(), short, in)
		require.NoError(t, err)
		var results []*Result
		var was []Result
		var spans [][]Span
		for i, c := range []*Conversation{long, short, long, long, short, long} {
			in.AddGenerationPrompt = i%2 == 0
			r, err := tmpl.Render(t.Context(), c, in)
			require.NoError(t, err)
			results, was, spans = append(results, r), append(was, *r), append(spans, slices.Collect(r.Spans()))
			was[i].Text, was[i].Extents = strings.Clone(r.Text), slices.Clone(r.Extents)
			if i == 3 {
				reusing := in
				reusing.Reuse = spare
				_, err = tmpl.Render(t.Context(), long, reusing)
				require.NoError(t, err)
			}
		}
		for i, r := range results {
			require.Equal(t, was[i].Text, r.Text, name)
			require.Equal(t, was[i].Extents, r.Extents, name)
			require.Equal(t, spans[i], slices.Collect(r.Spans()), name)
		}
	}
}

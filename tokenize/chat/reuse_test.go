package chat

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// Into the memory of a result that nobody reads any more, whatever that was, the
// same is rendered.
func TestReuseChangesNothingButMemory(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(kit.Templates(t), "*.jinja"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	convs := kitConversations(t)
	reused, i := 0, 0
	for k, file := range files {
		if k%8 != 0 {
			continue
		}
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		tmpl, err := Compile(string(src), Options{Name: filepath.Base(file)})
		require.NoError(t, err)
		var spent *Result
		for _, kc := range convs {
			i++
			c := kc.prepare(t, i%5 == 0)
			in := Input{AddGenerationPrompt: i%3 != 0, Now: kitClock}
			want, wantErr := tmpl.Render(t.Context(), c, in)
			in.Reuse = spent
			got, err := tmpl.Render(t.Context(), c, in)
			spent = got
			if wantErr != nil {
				require.EqualError(t, err, wantErr.Error())
				continue
			}
			require.NoError(t, err)
			require.Equal(t, want.Text, got.Text)
			require.Equal(t, slices.Collect(want.Traced()), slices.Collect(got.Traced()))
			require.Equal(t, want.Generation, got.Generation)
			require.ElementsMatch(t, want.Extents, got.Extents)
			if in.Reuse == nil {
				continue
			}
			if unsafe.StringData(in.Reuse.Text) == unsafe.StringData(got.Text) {
				reused++
			}
		}
	}
	require.Greater(t, reused, 100)
}

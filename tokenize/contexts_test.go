package tokenize_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// oddContext draws a context that leaves out messages of r before message m, shortens them, repeats
// or reorders them, with notes in between. It also returns the messages shown, and for each its
// index in r (−1 for a note).
func oddContext(rng *rand.Rand, r *rollout.Rollout, m int) (parts []rollout.ContextPart, shown []rollout.Message, source []int32) {
	parts = []rollout.ContextPart{}
	own := func(k int) {
		parts = append(parts, rollout.ContextPart{From: k, To: k + 1})
		shown, source = append(shown, r.Messages[k]), append(source, int32(k))
	}
	other := func(from, to int, msg rollout.Message, of int32) {
		parts = append(parts, rollout.ContextPart{From: from, To: to, Message: &msg})
		shown, source = append(shown, msg), append(source, of)
	}
	for k := range m {
		switch rng.IntN(8) {
		case 0:
		case 1:
			short := r.Messages[k]
			short.Content = short.Content[:len(short.Content)/2]
			other(k, k+1, short, int32(k))
		case 2:
			other(k, k, rollout.Message{Role: rollout.RoleUser, Content: fmt.Sprint("note ", k)}, -1)
			own(k)
		case 3:
			own(k)
			own(rng.IntN(k + 1))
		default:
			own(k)
		}
	}
	return parts, shown, source
}

// A context is encoded as if its messages were the whole conversation.
func TestContextsAreConversations(t *testing.T) {
	kit.OneGoroutine(t)
	files, err := filepath.Glob(filepath.Join(kit.Templates(t), "*.jinja"))
	require.NoError(t, err)
	const seed = 64
	n := 0
	for k, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		m, name := withTemplate(t, string(src)), filepath.Base(file)
		rng := rand.New(rand.NewPCG(seed, uint64(k)))
		for j := range 2 {
			r := randomRollout(rng, j%2 == 0)
			turn := r.Turns[rng.IntN(len(r.Turns))]
			parts, shown, source := oddContext(rng, r, turn.Message)
			own := *r
			own.Messages = append(shown, r.Messages[turn.Message])
			own.Turns = []rollout.Turn{{Message: len(shown), Step: turn.Step}}
			turn.Context.Parts = parts
			r.Turns = []rollout.Turn{turn}
			note := fmt.Sprintf("%s, seed %d, rollout %d: %+v", name, seed, j, parts)
			want, failure := rows(t, m, tokenize.Options{Mode: tokenize.PerStep}, &own)
			got, refused := rows(t, m, tokenize.Options{Mode: tokenize.PerStep}, r)
			require.Equal(t, failure == "", refused == "", "%s: %s, %s", note, failure, refused)
			require.Len(t, got, len(want), note)
			for i := range want {
				for k, m := range want[i].Source {
					if m >= 0 {
						want[i].Source[k] = append(source, int32(turn.Message))[m]
					}
				}
				for k := range want[i].Flags { // text of a note belongs to no message
					if want[i].Source[k] < 0 {
						want[i].Flags[k] &= rollout.FlagSpecial
					}
				}
				require.Equal(t, want[i], got[i], note)
				n++
			}
		}
	}
	require.Greater(t, n, len(files))
}

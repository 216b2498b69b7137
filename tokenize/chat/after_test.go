package chat

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// checkAfter renders with and without an earlier result to lean on.
func checkAfter(t *testing.T, tmpl *Template, c *Conversation, in Input, after *Result) *Result {
	t.Helper()
	in.After = nil
	want, wantErr := tmpl.Render(t.Context(), c, in)
	in.After = after
	got, err := tmpl.Render(t.Context(), c, in)
	if wantErr != nil {
		require.EqualError(t, err, wantErr.Error())
		return nil
	}
	require.NoError(t, err)
	require.Equal(t, want.Text, got.Text)
	require.Equal(t, slices.Collect(want.Spans()), slices.Collect(got.Spans()))
	require.Equal(t, want.Extents, got.Extents)
	require.Equal(t, want.Generation, got.Generation)
	return got
}

// A rendering that leans on another is the rendering without, and leaves every
// earlier one as it was, whichever it leans on.
func TestAfterChangesNothingButMemory(t *testing.T) {
	const source = `{%- for m in messages[::-1] %}{% if m.role == 'user' and not last is defined %}{% set last = m %}{% endif %}{% endfor -%}
{%- for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' and loop.last %}<think>{% endif %}{% generation %}{{ m.content | trim }}{% endgeneration %}</>{{ '\n' if not loop.last }}{% endfor -%}
{%- if add_generation_prompt %}<assistant>{{ '<think>' if messages | length is odd }}{% endif -%}`
	tmpl, err := Compile(source, Options{})
	require.NoError(t, err)
	const seed = 6
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 30 {
		var messages []Value
		for k := range 1 + rng.IntN(12) {
			text := strings.Repeat(string(rune('a'+rng.IntN(3))), rng.IntN(40))
			messages = append(messages, Object(Member{"role", String([]string{"user", "assistant"}[k%2])}, Member{"content", String(text)}))
		}
		c, err := NewConversation(List(messages...), Null(), Null(), ConversationOptions{})
		require.NoError(t, err)
		results := []*Result{nil}
		var texts []string
		for range 20 {
			in := Input{AddGenerationPrompt: rng.IntN(2) == 0}
			r := checkAfter(t, tmpl, c.Prefix(rng.IntN(c.Len()+1)), in, results[rng.IntN(len(results))])
			require.NotNil(t, r, "seed %d", seed)
			results, texts = append(results, r), append(texts, strings.Clone(r.Text))
		}
		for i, text := range texts {
			require.Equal(t, text, results[i+1].Text, "seed %d: result %d changed", seed, i)
		}
	}
}

// Text that is escaped is no reason to hold a beginning twice.
func TestAfterSharesEscapedText(t *testing.T) {
	tmpl, err := Compile("{% for m in messages %}{{ m.content | tojson }}{{ m | tojson }}{% endfor %}", Options{})
	require.NoError(t, err)
	m := Object(Member{"content", String(strings.Repeat("\"a line\"\n", 20))})
	c, err := NewConversation(List(m, m, m), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	whole, err := tmpl.Render(t.Context(), c, Input{})
	require.NoError(t, err)
	part := checkAfter(t, tmpl, c.Prefix(2), Input{}, whole)
	require.Equal(t, unsafe.StringData(whole.Text), unsafe.StringData(part.Text))
}

// Many may lean on one result at a time.
func TestAfterIsSafeForConcurrentUse(t *testing.T) {
	tmpl, err := Compile("{% for m in messages %}{{ m.content }}{% endfor %}", Options{})
	require.NoError(t, err)
	say := func(texts ...string) *Conversation {
		var list []Value
		for _, s := range texts {
			list = append(list, Object(Member{"content", String(s)}))
		}
		c, err := NewConversation(List(list...), Null(), Null(), ConversationOptions{})
		require.NoError(t, err)
		return c
	}
	first, err := tmpl.Render(t.Context(), say("begin"), Input{})
	require.NoError(t, err)
	first, err = tmpl.Render(t.Context(), say("begin", "more"), Input{After: first})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			end := string(rune('a' + k))
			r, err := tmpl.Render(t.Context(), say("begin", "more", end), Input{After: first})
			if err != nil || r.Text != "beginmore"+end {
				t.Errorf("got %v, %v", r, err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, "beginmore", first.Text)
}

// Prompts of growing prefixes, as an encoder renders them, with every template.
func TestAfterWithKitTemplates(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(templatesDir(t), "*.jinja"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	convs := kitConversations(t)
	n := 0
	for k, file := range files {
		if testing.Short() && k%8 != 0 {
			continue
		}
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		tmpl, err := Compile(string(src), Options{Name: filepath.Base(file)})
		require.NoError(t, err)
		var after *Result
		for _, kc := range convs {
			c := kc.prepare(t, false)
			for i := 1; i <= c.Len(); i++ {
				in := Input{AddGenerationPrompt: i%3 != 0, Now: kitClock}
				if r := checkAfter(t, tmpl, c.Prefix(i), in, after); r != nil {
					after = r
					n++
				}
			}
		}
	}
	t.Logf("%d renderings", n)
}

// Into the memory of a result that nobody reads any more, whatever that was, the
// same is rendered; it is left alone where another result holds a part of it.
func TestReuseChangesNothingButMemory(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(templatesDir(t), "*.jinja"))
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
			// A result made After got holds its memory, which is therefore not given away.
			in.Reuse, in.After = nil, got
			held, err := tmpl.Render(t.Context(), c, in)
			require.NoError(t, err)
			longer, err := tmpl.Render(t.Context(), c, Input{AddGenerationPrompt: !in.AddGenerationPrompt, Now: kitClock, Reuse: held})
			require.NoError(t, err)
			require.Equal(t, want.Text, got.Text)
			spent = longer
		}
	}
	require.Greater(t, reused, 100)
}

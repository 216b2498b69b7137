package kit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TemplateClock is the time that the oracle of the templates kit uses.
var TemplateClock = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

// TemplateSetting holds the options of a rendering in the templates kit.
type TemplateSetting struct {
	ID                   string                     `json:"id"`
	AddGenerationPrompt  bool                       `json:"add_generation_prompt"`
	ContinueFinalMessage bool                       `json:"continue_final_message"`
	DropNullKeys         bool                       `json:"drop_null_keys"`
	Kwargs               map[string]json.RawMessage `json:"kwargs"`
}

// TemplateConversation is a conversation of the templates kit, with the settings to render it with.
type TemplateConversation struct {
	ID        string            `json:"id"`
	Messages  json.RawMessage   `json:"messages"`
	Tools     json.RawMessage   `json:"tools"`
	Documents json.RawMessage   `json:"documents"`
	Settings  []TemplateSetting `json:"settings"`
}

// TemplateGolden is the real engine's result for a conversation.
type TemplateGolden struct {
	TemplateSetting
	Template        string                          `json:"template"`
	Conversation    string                          `json:"conversation"`
	Setting         string                          `json:"setting"`
	OK              bool                            `json:"ok"`
	Text            string                          `json:"text"`
	Error           *struct{ Kind, Message string } `json:"error"`
	GenerationSpans *[][2]int                       `json:"generation_spans"`
}

// TemplateConversations returns the conversations of the templates kit by id.
func TemplateConversations(t testing.TB) map[string]*TemplateConversation {
	t.Helper()
	data, err := os.ReadFile(Dir(t, "conformance", "templates", "conversations.json"))
	require.NoError(t, err)
	var list []*TemplateConversation
	require.NoError(t, json.Unmarshal(data, &list))
	out := map[string]*TemplateConversation{}
	for _, c := range list {
		out[c.ID] = c
	}
	return out
}

// TemplateNames returns the names of the templates in [Templates], sorted.
func TemplateNames(t testing.TB) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Templates(t), "*.jinja"))
	require.NoError(t, err)
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".jinja"))
	}
	return names
}

// TemplateSource returns the text of a template in [Templates].
func TemplateSource(t testing.TB, name string) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(Templates(t), name+".jinja"))
	require.NoError(t, err)
	return string(src)
}

package render

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// The templates of the kit in which the engines' own detection finds a loop over a message's
// content, run with Jinja2 3.1.6 (vLLM at 02e64f58, SGLang at 0b9c3848).
func TestContentFormatOfEveryTemplate(t *testing.T) {
	vllm := []string{"diffusion_gemma", "gemma3", "gemma4", "glm4moe", "idefics3", "llava_next", "qwen2_5_vl", "qwen3_vl", "smolvlm"}
	sglang := append([]string{"lfm2_2_5", "muse_glimmer", "qwen3_5", "qwen3_6", "qwen3_8", "qwen3_instruct_2507_training"}, vllm...)
	of := func(names []string, name string) bool {
		for _, n := range names {
			if strings.HasPrefix(name, n) {
				return true
			}
		}
		return false
	}
	files, err := filepath.Glob(filepath.Join(kit.Templates(t), "*.jinja"))
	require.NoError(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(file), ".jinja")
		lists := listsOf(string(source))
		require.Equal(t, of(vllm, name), lists[byVLLM], name)
		require.Equal(t, of(sglang, name), lists[bySGLang], name)
	}
}

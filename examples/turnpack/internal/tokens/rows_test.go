package tokens_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/rollout"
)

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Rows of other programs are as complete as their file, and Note lists what is missing.
func TestRowsByOthers(t *testing.T) {
	r, err := tokens.OpenRows(file(t, `{"prompt_ids":[5,6],"completion_ids":[7,8],"env_mask":[1,0],"reward":0.5}`+"\n"+`{"prompt_ids":[5],"completion_ids":[],"env_mask":[]}`+"\n"))
	require.NoError(t, err)
	defer r.Close()
	s, err := r.Read()
	require.NoError(t, err)
	require.Equal(t, []rollout.TokenID{5, 6, 7, 8}, s.IDs)
	require.Equal(t, []float32{0, 0, 1, 0}, s.Weight)
	require.Equal(t, []int32{-1, -1, -1, -1}, s.Source)
	require.Equal(t, 0.5, s.Reward)
	require.Nil(t, s.Logprob)
	require.NoError(t, s.Check())
	s, err = r.Read()
	require.NoError(t, err)
	require.Equal(t, "row 1", s.ID)
	_, err = r.Read()
	require.ErrorIs(t, err, io.EOF)
	note := r.Note("")
	require.Contains(t, note, "It holds no logprobs, advantages, group_id, rollout_id, sources.")
	require.Contains(t, note, "embedded")
	require.NotContains(t, r.Note("model"), "embedded")
}

func TestRowsWithoutMask(t *testing.T) {
	r, err := tokens.OpenRows(file(t, `{"input_ids":[5,6]}`+"\n"))
	require.NoError(t, err)
	defer r.Close()
	s, err := r.At(0)
	require.NoError(t, err)
	require.Zero(t, s.Trained())
	require.Contains(t, r.Note(""), "Without a loss mask nothing shows as trained")
	_, err = r.At(7)
	require.ErrorIs(t, err, rollout.KindInput)
	_, err = tokens.OpenRows(file(t, "text"))
	require.Error(t, err)
	require.False(t, errors.Is(err, io.EOF))
}

// A file of an incomplete set can be read, and Note says so.
func TestRowsOfUnfinishedSet(t *testing.T) {
	dir := t.TempDir()
	set, err := shard.Create(dir, shard.Options{GroupsPerShard: 1})
	require.NoError(t, err)
	for _, g := range []string{"a", "b"} {
		s := rollout.Sample{Status: rollout.StatusCompleted}
		s.Group, s.Rollout, s.IDs, s.Weight = g, g, []int32{1, 2}, []float32{0, 1}
		require.NoError(t, set.Write(rollout.FinishRows([]rollout.Sample{s})[0]))
	}
	note := func() string {
		r, err := tokens.OpenRows(filepath.Join(dir, "data", "part-00000.parquet"))
		require.NoError(t, err)
		defer r.Close()
		s, err := r.At(0)
		require.NoError(t, err)
		require.Equal(t, "a", s.Group)
		return r.Note("")
	}
	require.Contains(t, note(), export.ErrUnfinished.Error())
	require.NotContains(t, note(), "row schema")
	require.NoError(t, set.Close())
	require.Empty(t, note())
}

// Bytes of a part are counted after its markers, and separately for each part.
func TestOffsets(t *testing.T) {
	m := withSpecials(t, "<|im_end|>", "<think>", "</think>")
	s := row(nil)
	const sampled = rollout.FlagSampled
	for _, p := range []struct {
		text  string
		from  int32
		flags rollout.Flag
	}{{"user\n", -1, 0}, {"hello there", 0, rollout.FlagContent}, {"<think>", 1, sampled | rollout.FlagReasoning | rollout.FlagSpecial}, {"\n", 1, sampled | rollout.FlagReasoning},
		{"so it is", 1, sampled | rollout.FlagReasoning}, {"done now", 1, sampled | rollout.FlagContent}} {
		for _, id := range encode(t, m, p.text) {
			s.IDs, s.Source, s.Flags = append(s.IDs, id), append(s.Source, p.from), append(s.Flags, p.flags)
		}
	}
	spell := tokens.NewSpeller(m.Tokenizer)
	fields := map[rollout.Flag]string{rollout.FlagContent: "hello there", sampled | rollout.FlagReasoning: "so it is", sampled | rollout.FlagContent: "done now"}
	seen := map[rollout.Flag]string{}
	for i, at := range tokens.Offsets(s, spell) {
		if at < 0 {
			continue
		}
		text, ok := spell.Bytes(s.IDs[i])
		require.True(t, ok)
		require.Equal(t, string(text), fields[s.Flags[i]][at:int(at)+len(text)])
		seen[s.Flags[i]] += string(text)
	}
	require.Equal(t, fields, seen)
}

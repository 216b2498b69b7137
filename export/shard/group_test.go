package shard_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/rollout"
)

// byGroup cuts rows where the group changes.
func byGroup(in []rollout.Sample) (out [][]rollout.Sample) {
	for i := range in {
		if i == 0 || in[i].Group != in[i-1].Group {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], in[i])
	}
	return out
}

// A group that is refused leaves no trace: the set has the bytes of one that never saw
// it, wherever in a shard it came and whatever columns and tokenizer it had.
func TestRefusedGroup(t *testing.T) {
	groups := byGroup(rows(9))
	write := func(t *testing.T, refuse func(*testing.T, *shard.Set, int)) map[string]string {
		dir := t.TempDir()
		s, err := shard.Create(dir, shard.Options{GroupsPerShard: 2})
		require.NoError(t, err)
		for i, g := range groups {
			refuse(t, s, i)
			require.NoError(t, s.WriteGroup(g), "group %d", i)
		}
		refuse(t, s, len(groups))
		require.NoError(t, s.Close())
		require.NoError(t, shard.Verify(dir))
		return contents(t, dir)
	}
	want := write(t, func(*testing.T, *shard.Set, int) {})
	for name, c := range map[string]struct {
		rule export.Rule
		bad  func(i int) []rollout.Sample
	}{
		"last row without a trained token": {export.RuleTrained, func(i int) []rollout.Sample {
			g := other(groups[i%9])
			g[len(g)-1].Weight = make([]float32, g[len(g)-1].Len())
			return g
		}},
		"two groups": {export.RuleOrder, func(i int) []rollout.Sample {
			g := other(groups[i%9])
			last := g[len(g)-1]
			last.Group, last.Rollout, last.ID = "z", "z/0", ""
			return append(g, last)
		}},
		"a rollout twice": {export.RuleOrder, func(i int) []rollout.Sample {
			g := other(groups[i%9])
			between := g[0]
			between.Rollout, between.ID = "z/1", ""
			return append(append(g, rollout.FinishRows([]rollout.Sample{between})...), g[0])
		}},
		"other columns and tokenizer": {export.RuleColumns, func(i int) []rollout.Sample {
			g := other(groups[i%9])
			for k := range g {
				adv := 0.5
				g[k].Advantage, g[k].Tokenizer, g[k].Template = &adv, "sha256:other", "sha256:other"
			}
			g[len(g)-1].Weight = make([]float32, g[len(g)-1].Len())
			return g
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := write(t, func(t *testing.T, s *shard.Set, i int) {
				err := s.WriteGroup(c.bad(i))
				var refused *export.RefusedError
				require.ErrorAs(t, err, &refused, "before group %d", i)
				if rule := c.rule; i > 0 || rule != export.RuleColumns { // the first group is free to choose
					require.Equal(t, rule, refused.Rule)
				}
			})
			require.Equal(t, want, got)
		})
	}
}

// other gives the rows of a group the keys of another group.
func other(g []rollout.Sample) []rollout.Sample {
	g = slices.Clone(g)
	for i := range g {
		g[i].Group, g[i].Rollout, g[i].ID = "x"+g[i].Group, "x"+g[i].Rollout, ""
	}
	return g
}

// A group that was refused can come again, mended.
func TestRefusedGroupComesAgain(t *testing.T) {
	g := byGroup(rows(2))
	s, err := shard.Create(t.TempDir(), shard.Options{GroupsPerShard: 1})
	require.NoError(t, err)
	require.NoError(t, s.WriteGroup(g[0]))
	bad := slices.Clone(g[1])
	bad[len(bad)-1].Weight = make([]float32, bad[len(bad)-1].Len())
	require.Error(t, s.WriteGroup(bad))
	require.NoError(t, s.WriteGroup(g[1]))
	require.Error(t, s.WriteGroup(g[1]), "a group that was taken is taken once")
	require.NoError(t, s.Close())
	require.Equal(t, len(g[0])+len(g[1]), s.Manifest().Rows)
	require.Equal(t, 2, s.Manifest().Groups)
}

// A step is readable when EndStep returns. Its groups can come again in the next step,
// with other rollouts; its rollouts and, within a step, its groups cannot.
func TestEndStep(t *testing.T) {
	g := byGroup(rows(3))
	step := func(n string) (out [][]rollout.Sample) {
		for _, of := range g {
			of = slices.Clone(of)
			for i := range of {
				of[i].Rollout, of[i].ID = n+of[i].Rollout, ""
			}
			out = append(out, of)
		}
		return out
	}
	for name, write := range map[string]func(*shard.Set, []rollout.Sample) error{
		"group by group": (*shard.Set).WriteGroup,
		"row by row": func(s *shard.Set, of []rollout.Sample) error {
			for _, row := range of {
				if err := s.Write(row); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := shard.Create(dir, shard.Options{})
			require.NoError(t, err)
			for i, n := range []string{"0/", "1/", "2/"} {
				for _, of := range step(n) {
					require.NoError(t, write(s, of))
				}
				require.NoError(t, s.EndStep())
				part := filepath.Join(dir, []string{"data/part-00000.parquet", "data/part-00001.parquet", "data/part-00002.parquet"}[i])
				read, _, err := export.ReadAll(part)
				require.NoError(t, err)
				require.Len(t, read, len(rows(3)))
				require.ErrorIs(t, shard.Unfinished(part), export.ErrUnfinished)
			}
			require.NoError(t, s.EndStep(), "a step without a row")
			require.NoError(t, s.Close())
			require.NoError(t, shard.Verify(dir))
			require.Len(t, s.Manifest().Shards, 3)
			require.Equal(t, 9, s.Manifest().Groups)
			require.NoError(t, shard.Unfinished(filepath.Join(dir, "data", "part-00000.parquet")))

			s, err = shard.Create(t.TempDir(), shard.Options{})
			require.NoError(t, err)
			require.NoError(t, write(s, step("0/")[0]))
			require.NoError(t, s.EndStep())
			require.ErrorContains(t, write(s, step("0/")[0]), "was closed before", "a rollout comes once in the set")
			require.NoError(t, s.Abort())

			s, err = shard.Create(t.TempDir(), shard.Options{})
			require.NoError(t, err)
			require.NoError(t, s.EndStep())
			for _, of := range step("0/")[:2] {
				require.NoError(t, write(s, of))
			}
			require.ErrorContains(t, write(s, step("1/")[0]), "was closed before", "a group comes once in a step")
			require.NoError(t, s.Abort())

			s, err = shard.Create(t.TempDir(), shard.Options{})
			require.NoError(t, err)
			require.NoError(t, write(s, step("0/")[0]))
			require.NoError(t, s.Abort())
			require.ErrorIs(t, s.EndStep(), export.ErrAborted)
		})
	}
}

package roster_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/roster"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

func TestPack(t *testing.T) {
	var full reward.RolloutReward // every field set
	for i := range reflect.TypeOf(full).NumField() {
		switch f := reflect.ValueOf(&full).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("text of field " + string(rune('a'+i)))
		case reflect.Float64:
			f.SetFloat(-0.1 / float64(i+1))
		case reflect.Int:
			f.SetInt(int64(1000 - 300*i))
		default:
			t.Fatalf("field %d of %T has a kind that Pack does not write", i, full)
		}
	}
	var g roster.Roster
	g.Add(1, rollout.Origin{File: "b", Line: 7})
	g.Add(0, rollout.Origin{File: "a", Line: 3})
	g.Add(1, rollout.Origin{File: "b", Line: 1 << 30})
	rewards := []reward.GroupRewards{
		{Key: "", Rollouts: []reward.RolloutReward{full}},
		{Key: "group", Rollouts: []reward.RolloutReward{{ID: "r", Reward: math.Inf(-1)}, {Reward: math.Copysign(0, -1)}}},
	}
	text := g.Pack(rewards)
	got, groups, ok := roster.Unpack(text)
	require.True(t, ok)
	require.Equal(t, rewards, groups)
	require.True(t, math.Signbit(groups[1].Rollouts[1].Reward))
	require.Equal(t, g.Entries, got.Entries)
	require.Equal(t, []string{"b", "a"}, got.Files)
	for n := range text {
		_, _, ok := roster.Unpack(text[:n])
		require.False(t, ok, "the first %d bytes", n)
	}
	for i := range text {
		damaged := append([]byte(nil), text...)
		damaged[i] ^= 0xff
		roster.Unpack(damaged) // does not panic, and takes no memory by what it says
	}
}

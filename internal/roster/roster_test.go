package roster_test

import (
	"math"
	"reflect"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/keys"
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
	var groups keys.Keys
	groups.Add("")
	groups.Add("group")
	var g roster.Roster
	bad := reward.RolloutReward{ID: "r", Reward: math.Inf(-1)}
	g.Add(1, rollout.Origin{File: "b", Line: 7}, bad)
	g.Add(0, rollout.Origin{File: "a", Line: 3}, full)
	g.Add(1, rollout.Origin{File: "b", Line: 1 << 30}, reward.RolloutReward{Reward: math.Copysign(0, -1)})
	want := []reward.GroupRewards{
		{Key: "", Rollouts: []reward.RolloutReward{full}},
		{Key: "group", Rollouts: []reward.RolloutReward{bad, {Reward: math.Copysign(0, -1)}}},
	}
	require.Equal(t, want, g.Rewards(&groups))
	text := g.Pack(&groups)
	got, keys, ok := roster.Unpack(text)
	require.True(t, ok)
	require.Equal(t, want, got.Rewards(&keys))
	require.True(t, math.Signbit(got.Rewards(&keys)[1].Rollouts[1].Reward))
	require.Equal(t, 3, got.Len())
	group, id, from := got.At(2)
	require.Equal(t, 1, group)
	require.Empty(t, id)
	require.Equal(t, rollout.Origin{File: "b", Line: 1 << 30}, from)
	_, id, from = got.At(0)
	require.Equal(t, "r", id)
	require.Equal(t, rollout.Origin{File: "b", Line: 7}, from)
	for n := range text {
		_, _, ok := roster.Unpack(text[:n])
		require.False(t, ok, "the first %d bytes", n)
	}
	for i := range text {
		damaged := append([]byte(nil), text...)
		damaged[i] ^= 0xff
		roster.Unpack(damaged) // does not panic, and allocates no memory by sizes in the data
	}
}

// Rollouts of many pages come back in their groups and their order.
func TestPages(t *testing.T) {
	var groups keys.Keys
	var g roster.Roster
	want := make([]reward.GroupRewards, 7)
	for i := range 5000 {
		group, _ := groups.Add(strconv.Itoa(i % 7))
		known := reward.RolloutReward{ID: "r" + strconv.Itoa(i), Reward: float64(i)}
		g.Add(group, rollout.Origin{Line: i}, known)
		want[group].Key, want[group].Rollouts = strconv.Itoa(i%7), append(want[group].Rollouts, known)
	}
	require.Equal(t, want, g.Rewards(&groups))
	got, keys, ok := roster.Unpack(g.Pack(&groups))
	require.True(t, ok)
	require.Equal(t, want, got.Rewards(&keys))
}

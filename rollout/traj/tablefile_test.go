package traj_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// The rows of a table read like the same rows as JSON Lines, whatever the importer.
// internal/oracle/parquet_fixtures.py wrote both.
func TestRowsOfTablesAreRecords(t *testing.T) {
	tables, err := filepath.Glob("testdata/parquet/*.parquet")
	require.NoError(t, err)
	arrow, err := filepath.Glob("testdata/parquet/*.arrow")
	require.NoError(t, err)
	tables = append(tables, arrow...)
	require.Len(t, tables, 9+2)
	for _, table := range tables {
		ext := filepath.Ext(table)
		lines := strings.TrimSuffix(table, ext) + ".jsonl"
		got, want := all(t, stop, table), all(t, stop, lines)
		require.NotEmpty(t, want)
		ignored := cmpopts.IgnoreFields(rollout.Rollout{}, "Origin")
		for i := range want {
			require.Equal(t, rollout.Origin{File: table, Line: want[i].Origin.Line, Index: want[i].Origin.Index, Format: want[i].Origin.Format}, got[i].Origin)
			if strings.HasPrefix(want[i].ID, filepath.Base(lines)) {
				want[i].ID = strings.Replace(want[i].ID, ".jsonl", ext, 1)
				want[i].Group = strings.Replace(want[i].Group, ".jsonl", ext, 1)
			}
			for k := range want[i].Tools { // a union of structs writes null for absent members
				want[i].Tools[k] = []byte(strings.NewReplacer(`"path": null, `, "", `"cmd": null, `, "", `, "cmd": null`, "", `: `, `:`, `, `, `,`).Replace(string(want[i].Tools[k])))
				got[i].Tools[k] = []byte(strings.NewReplacer(`: `, `:`, `, `, `,`).Replace(string(got[i].Tools[k])))
			}
			require.Empty(t, cmp.Diff(want[i], got[i], ignored, cmpopts.EquateEmpty(), cmp.Transformer("json", func(b []byte) string {
				return strings.NewReplacer(`: `, `:`, `, `, `,`).Replace(string(b))
			})), "%s, row %d", table, i+1)
		}
		require.Len(t, got, len(want))
	}
}

// A folder of shards is one data set; a table of something else is ignored, or an error if
// it was named.
func TestFoldersOfTables(t *testing.T) {
	dir := t.TempDir()
	good, err := os.ReadFile("testdata/parquet/swe-rebench-openhands.parquet")
	require.NoError(t, err)
	other, err := os.ReadFile("../../internal/pqread/testdata/types.parquet")
	require.NoError(t, err)
	write(t, dir, "data/train-00000-of-00002.parquet", good)
	bad := write(t, dir, "data/train-00001-of-00002.parquet", good[:len(good)-1])
	types := write(t, dir, "data/types.parquet", other)
	r, err := traj.Open([]string{dir}, traj.Options{})
	require.NoError(t, err)
	n := 0
	for _, err := range r.All() {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 7, n)
	require.Len(t, r.Report().Errors, 1)
	require.ErrorContains(t, r.Report().Errors[0], bad+": the Parquet file cannot be read")
	require.Equal(t, 1, r.Report().UnreadCount)
	require.Equal(t, types, r.Report().Unread[0].Path)
	r, err = traj.Open([]string{types}, stop)
	require.NoError(t, err)
	_, err = first(t, r)
	require.ErrorContains(t, err, types+":1: no known format: an object with keys \"m\"")
	whole, err := os.ReadFile("testdata/parquet/swe-rebench-openhands.arrow")
	require.NoError(t, err)
	cut := write(t, dir, "cut.arrow", whole[:len(whole)-1])
	r, err = traj.Open([]string{cut}, stop)
	require.NoError(t, err)
	_, err = first(t, r)
	require.ErrorContains(t, err, cut+": the Arrow file cannot be read: the stream has no end mark")
	_, _, err = read(t, "x.parquet", string(good), stop)
	require.ErrorContains(t, err, "found a Parquet file, expected JSON")
}

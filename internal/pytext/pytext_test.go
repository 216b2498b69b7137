package pytext

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The expected lines are those of textwrap.wrap with replace_whitespace=False, expand_tabs=False.
func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text          string
		width         int
		long, hyphens bool
		want          []string
	}{
		{"the quick brown fox", 10, true, true, []string{"the quick", "brown fox"}},
		{"well-known lazy", 7, true, true, []string{"well-", "known", "lazy"}},
		{"well-known lazy", 7, true, false, []string{"well-kn", "own", "lazy"}},
		{"abcdefghij", 4, true, true, []string{"abcd", "efgh", "ij"}},
		{"abcdefghij kl", 4, false, true, []string{"abcdefghij", "kl"}},
		{"äöü äöü", 3, true, true, []string{"äöü", "äöü"}},
		{"", 4, true, true, nil},
	} {
		var got []string
		for _, r := range Wrap(c.text, c.width, c.long, c.hyphens) {
			got = append(got, c.text[r[0]:r[1]])
		}
		require.Equal(t, c.want, got, c.text)
	}
}

func TestStrftime(t *testing.T) {
	at := time.Date(2026, 1, 5, 9, 7, 3, 45_000_000, time.UTC)
	for format, want := range map[string]string{
		"%Y-%m-%d":           "2026-01-05",
		"%d %b %Y":           "05 Jan 2026",
		"%A, %B %-d":         "Monday, January 5",
		"%H:%M:%S.%f":        "09:07:03.045000",
		"%I:%M %p":           "09:07 AM",
		"%j %U %W %V %u %w":  "005 01 01 02 1 1",
		"%e|%k|%l":           " 5| 9| 9",
		"%5d %^a %_m":        "00005 MON  1",
		"%c":                 "Mon Jan  5 09:07:03 2026",
		"%%%n%t":             "%\n\t",
		"%Q 100 %":           "%Q 100 %",
		"no directive, äöü!": "no directive, äöü!",
	} {
		require.Equal(t, want, Strftime(at, format), format)
	}
}

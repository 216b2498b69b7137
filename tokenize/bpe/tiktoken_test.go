package bpe

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize/bpe/internal/pretok"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// TestPatternsOfTiktokenHaveScanners: patterns in Rust's syntax can only be matched by scanners.
func TestPatternsOfTiktokenHaveScanners(t *testing.T) {
	for _, pattern := range knownRanks {
		require.NotNil(t, pretok.KnownOfTiktoken(uni.Load(), pattern), pattern)
	}
}

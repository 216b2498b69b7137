package hf

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The notices name every crate of the library with its terms, except crates for other systems.
func TestLicencesNameEveryCrate(t *testing.T) {
	lock, err := os.ReadFile("../../internal/libtokenizers/Cargo.lock")
	require.NoError(t, err)
	elsewhere := regexp.MustCompile(`^(windows|wasm|wasi$|wit-bindgen|js-sys|web-time|bumpalo|r-efi|encode_unicode|zerocopy-derive)`)
	named := 0
	for _, m := range regexp.MustCompile(`(?m)^name = "(.*)"\nversion = "(.*)"\nsource`).FindAllStringSubmatch(string(lock), -1) {
		if elsewhere.MatchString(m[1]) {
			continue
		}
		require.Contains(t, Licences(), "\n"+m[1]+" "+m[2]+" (", "run make notices")
		named++
	}
	require.Greater(t, named, 50)
	for _, text := range []string{"Apache License", "The Oniguruma", "Permission is hereby granted"} {
		require.Contains(t, Licences(), text)
	}
}

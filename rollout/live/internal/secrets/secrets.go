// Package secrets removes credentials from the records of requests: the values of JSON members named like
// credential headers, and what follows such a name in a text.
package secrets

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// secretKeys are the names of JSON members whose values are never recorded.
var secretKeys = map[string]bool{"authorization": true, "proxy-authorization": true, "x-api-key": true, "api-key": true, "apikey": true, "cookie": true, "set-cookie": true}

var (
	secretText  = regexp.MustCompile(`(?i)(bearer|basic|authorization|x-api-key|api[-_]key)(["']?\s*[:=]\s*["']?|\s+)((bearer|basic)\s+)?[^\s"',;]+`)
	credentials = regexp.MustCompile(`//[^/@\s]*@`)
)

// Removed replaces a secret.
const Removed = "[removed]"

// Redact removes what follows the name of a credential in a text.
func Redact(s string) string { return secretText.ReplaceAllString(s, "$1$2"+Removed) }

// Named reports whether a member with that name holds a secret.
func Named(key string) bool { return secretKeys[strings.ReplaceAll(strings.ToLower(key), "_", "-")] }

// Without returns raw with the values of such members removed; raw without such members is returned unchanged.
func Without(field string, raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) > 0 && !json.Valid(raw) {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: field}, "the value is not JSON")
	}
	if !mentions(raw) && bytes.IndexByte(raw, '\\') < 0 {
		return raw, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: field}, "the value is not JSON: %w", err)
	}
	if !takeSecrets(v) {
		return raw, nil
	}
	return json.Marshal(v)
}

// mentions reports whether raw may contain one of the names: each name contains one of these words.
func mentions(raw []byte) bool {
	low := bytes.ToLower(raw)
	return bytes.Contains(low, []byte("authorization")) || bytes.Contains(low, []byte("api")) || bytes.Contains(low, []byte("cookie"))
}

// takeSecrets replaces secrets in v in place and reports whether there were any.
func takeSecrets(v any) (took bool) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			took = takeSecrets(x) || took
		}
	case map[string]any:
		for key, x := range v {
			if Named(key) {
				v[key], took = Removed, true
				continue
			}
			took = takeSecrets(x) || took
		}
	}
	return took
}

// WithoutUser returns a URL without its user and password.
func WithoutUser(url string) string {
	if !strings.Contains(url, "@") {
		return url
	}
	return credentials.ReplaceAllString(url, "//")
}

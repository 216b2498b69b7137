package openai

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// leastSecret is the length from which on a key is a secret. Servers without keys
// are often given a placeholder ("none", "EMPTY"), which is an ordinary word in replies.
const leastSecret = 6

// redact removes keys that a server may repeat: as they are, and as JSON, URLs and
// base64 write them. A key that the server takes apart or turns over is not known.
func (c *Client) redact(text string) string {
	for _, e := range c.pool.endpoints {
		for _, s := range spellings(e.key) {
			text = strings.ReplaceAll(text, s, "[key]")
		}
	}
	return text
}

// spellings are the forms of a key in which others may read it, the longest first.
func spellings(key string) []string {
	if len(key) < leastSecret {
		return nil
	}
	quoted, _ := json.Marshal(key) // a string always encodes
	inner := string(quoted[1 : len(quoted)-1])
	raw := []byte(key)
	all := []string{
		key, inner, strings.ReplaceAll(inner, "/", `\/`), url.QueryEscape(key), url.PathEscape(key),
		base64.RawStdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw),
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(all)
}

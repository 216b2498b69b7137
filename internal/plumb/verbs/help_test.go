package verbs

import (
	"context"
	"io"
	"strings"
	"testing"
)

// Asking for help is no error; a missing or unknown verb is.
func TestHelpExitsZero(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-h"}, 0, "usage: plumb"}, {[]string{"--help"}, 0, "advantage"}, {[]string{"ids", "-h"}, 0, "-tokenizer"},
		{nil, 2, "usage: plumb"}, {[]string{"-x"}, 2, "usage: plumb"}, {[]string{"nothing"}, 2, `no verb "nothing"`},
	} {
		var says strings.Builder
		if code := Main(context.Background(), c.args, strings.NewReader(""), io.Discard, &says); code != c.code || !strings.Contains(says.String(), c.says) {
			t.Errorf("plumb %v: exit status %d with %q, expected %d with %q", c.args, code, says.String(), c.code, c.says)
		}
	}
}

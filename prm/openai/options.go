package openai

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/turnpack/turnpack/internal/faults"
)

// Price is the price of a million tokens, in any currency.
type Price struct{ Prompt, Completion float64 }

// Options configures a Client. Endpoints and Model are required; any other zero value selects the
// default in brackets.
type Options struct {
	// Endpoints lists base URLs up to and including the version, for example http://judge-0:8000/v1.
	// They must serve the same model.
	Endpoints []string
	Model     string
	// KeyEnv names the environment variable that holds the API key [TURNPACK_JUDGE_KEY, and
	// OPENAI_API_KEY for api.openai.com]. An unset variable means no key.
	KeyEnv string

	Temperature *float64 // [the server's]
	TopP        *float64 // [the server's]
	MaxTokens   int      // length of an answer [the server's]
	// Schema is a JSON schema that the answer must follow, if the server supports structured output.
	Schema map[string]any
	// Extra holds additional fields of the request body, such as chat_template_kwargs. The client's
	// own fields messages, n, seed and stream are refused.
	Extra map[string]any
	// OneByOne disables requests for several votes (the n parameter). Otherwise support for them is
	// detected per endpoint.
	OneByOne bool

	Concurrency int           // maximum number of requests in flight over all callers [64]
	Timeout     time.Duration // for one request, from the first byte sent to the last received [2m]
	Retries     int           // further tries after a failure; −1 = none [5]
	// Patience bounds the time of one vote, including all tries and waits [10m].
	Patience time.Duration
	bounds

	Price Price
	Hook  Hook
	// Transport sends the requests [a separate pool with Concurrency idle connections per endpoint].
	Transport http.RoundTripper
}

// bounds holds the limits of a client that only tests change.
type bounds struct {
	backoffMin, backoffMax time.Duration // wait before the first retry, doubled for each further retry up to backoffMax
	ejectAfter             int           // consecutive failures that eject an endpoint
	ejectFor, ejectMax     time.Duration // length of an ejection, doubled up to ejectMax while probes fail
	maxReply               int64         // maximum size of one reply in bytes
}

const (
	defaultKeyEnv = "TURNPACK_JUDGE_KEY"
	openAIKeyEnv  = "OPENAI_API_KEY"
	openAIHost    = "api.openai.com"
)

func (o Options) withDefaults() Options {
	o.Concurrency = cmp.Or(o.Concurrency, 64)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Minute)
	o.Retries = cmp.Or(o.Retries, 5)
	o.Patience = cmp.Or(o.Patience, 10*time.Minute)
	o.backoffMin = cmp.Or(o.backoffMin, 250*time.Millisecond)
	o.backoffMax = cmp.Or(o.backoffMax, 20*time.Second)
	o.ejectAfter = cmp.Or(o.ejectAfter, 8)
	o.ejectFor = cmp.Or(o.ejectFor, time.Second)
	o.ejectMax = cmp.Or(o.ejectMax, time.Minute)
	o.maxReply = cmp.Or(o.maxReply, 16<<20)
	return o
}

// Validate reports all faults at once.
func (o Options) Validate() error {
	f := faults.List{Of: "Options."}
	if len(o.Endpoints) == 0 {
		f.Add("Endpoints", "expected at least one base URL such as http://host:8000/v1")
	}
	for _, e := range o.Endpoints {
		u, err := url.Parse(e)
		switch {
		case err != nil:
			// The URL itself may contain a secret, so the error does not repeat it.
			f.Add("Endpoints", "one of them is not a URL")
		case u.User != nil || u.RawQuery != "":
			f.Add("Endpoints", "%s holds a user or a query: keys come from the environment only", u.Host)
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			f.Add("Endpoints", "found %q, expected http://host… or https://host…", e)
		}
	}
	if o.Model == "" {
		f.Add("Model", "expected the name of the judge model")
	}
	for _, own := range []string{"messages", "n", "seed", "stream"} {
		if _, set := o.Extra[own]; set {
			f.Add("Extra", "the field %q is set by the client for each request", own)
		}
	}
	f.Count("MaxTokens", o.MaxTokens)
	f.Count("Concurrency", o.Concurrency)
	f.Count("Timeout", int(o.Timeout))
	f.Count("Patience", int(o.Patience))
	if o.Retries < -1 {
		f.Add("Retries", "%d is below -1", o.Retries)
	}
	if t := o.Temperature; t != nil && !(*t >= 0 && *t <= math.MaxFloat32) {
		f.Add("Temperature", "%g is not a finite number >= 0", *t)
	}
	if p := o.TopP; p != nil && !(*p > 0 && *p <= 1) {
		f.Add("TopP", "%g is not in (0, 1]", *p)
	}
	f.Amount("Price.Prompt", o.Price.Prompt)
	f.Amount("Price.Completion", o.Price.Completion)
	return f.Err()
}

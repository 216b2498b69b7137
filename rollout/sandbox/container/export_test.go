package container

import (
	"time"

	"github.com/turnpack/turnpack/rollout/sandbox"
)

// SetPatience lets tests use a shorter time.
func SetPatience(d sandbox.Driver, t time.Duration) { d.(*driver).patience = t }

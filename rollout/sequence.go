package rollout

// TokenID is a vocabulary index.
type TokenID = int32

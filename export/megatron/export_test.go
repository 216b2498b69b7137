package megatron

// Segment returns the stored form of a row.
var Segment = (*Options).segment

package megatron

// Segment is the stored form of a row.
var Segment = (*Options).segment

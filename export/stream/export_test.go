package stream

// OpenKeeping is Open with a different number of batches kept in memory.
var OpenKeeping = open

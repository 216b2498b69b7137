package stream

// OpenKeeping is Open with another number of batches that are known.
var OpenKeeping = open

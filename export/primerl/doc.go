// Package primerl writes the rank files that prime-rl's trainer reads
// (PrimeIntellect-ai/prime-rl@559b4477, filesystem transport). Step N has the files
// rollouts/step_N/rank_r.bin, one per data-parallel rank; each is a MessagePack array of
// micro-batches of packed sequences. Prepare the rows with target "prime-rl".
//
// Every rank gets the same number of micro-batches; missing ones are filled with copies that
// train nothing. Weights (for the mean over rollouts, for example) are written as rl_weights,
// which scale each token's loss without changing the token count.
package primerl

// Package megatron writes packed Parquet for supervised training with Megatron-Bridge
// (NVIDIA-NeMo/Megatron-Bridge@067f987d): one Parquet row is a pack of segments, one segment
// per export row. Prepare the rows with target "megatron".
//
// The stored mask is aligned to labels: inside each segment stored[t] = mask[t+1], and the last
// value is 0. Inputs are segment[:L−1], so a row of L tokens takes L − 1 positions of a pack,
// padded to a multiple if context or sequence parallelism needs one.
package megatron

// Package model predicts how long a node takes for a number of URLs, and learns from completed assignments.
//
// It is the running-time model of Zhang, Tan, Chen and Lü, "An Efficient Load Balance Strategy for Distributed Crawler
// System", Computer Engineering 45(11), 2019: a neural network with six inputs (CPU cores, GHz, GB of memory, Mb/s of
// network and of disk, number of URLs), a hidden layer of tanh units, and one linear output. Back-propagation trains it
// to minimize E = (Y - O)²/2.
//
// [Model.Add] adds samples to a [Model], and [Model.Train] trains it. [Model.Time] returns a function from numbers of
// URLs to seconds, as kumo/internal/cluster/strategy/balance/split expects. The package only computes: it uses no
// clock, files or goroutines. On one kind of processor, the same samples and seed yield the same model.
//
// # Scaling
//
// Inputs and seconds are scaled to the range 0 to 1 between the least and the greatest sample, as in the paper, but by
// their logarithms: times are products of pages and machine figures. This divides the error for unknown machines by two
// to five (docs/decisions/running-time.md).
//
// A machine figure outside its range counts as the nearer end. For numbers of URLs outside the range, the time per page
// is that of the nearer end. Ranges grow with the samples, and the weights are adjusted so that the network's output
// stays the same.
//
// # Monotonicity
//
// More URLs never take less time, by construction. The weights on the paths from the number of URLs to the output are
// not negative; each training step clamps them. So the shortest split can be found exactly.
//
// # Training
//
// A step is one of Adam over 8 samples, with weight decay. The learning rate starts at 0.02 and falls to a hundredth of
// that along half a cosine in each training. Training ends after the requested number of epochs, or when the mean of E
// is below 1e-6. It starts from the current weights.
//
// One sample in five is held back and serves only to measure the error that [Report] contains. With fewer than 20
// training samples there is no network. The time of a node then follows from its own pages per second, or from the mean
// of the other nodes if it has no samples; [Basis] identifies the source. The same applies to nodes with samples while
// the network is not known to be better: fewer than three samples are held back, or its error on them is greater.
//
// The number of samples is bounded, and each node has the same share. A new sample replaces a random one of the same
// node. If there are more nodes than an eighth of the samples, the nodes without new samples for the longest time are
// dropped.
//
// # Correction for each node
//
// This goes beyond the paper. Two machines with the same figures can differ in speed: one has an old disk or a busy
// neighbor. So the network's output is multiplied by a factor of the node. The factor's logarithm is a weighted mean
// over the node's samples of log(actual time / output). Each sample has 0.9 times the weight of the next one, and two
// more samples with the ratio 1 are added. So a node without samples has the factor 1, and a changed node has a new
// factor after about ten samples.
//
// # The paper's own model
//
// Config.Paper selects it, for comparison: linear scaling without bounds, a network that is free to decrease, plain
// back-propagation after each sample without decay, and no correction of nodes. Training continues until the mean of E
// is below the threshold, for at most 20 epochs for each requested one, and a thousand steps for each. Without a
// network all nodes are predicted to take one second a page. Predictions are at least 0.1 s. The paper gives no
// learning rate, threshold or number of samples. Its update rule has the derivative of a sigmoid; here it is that of
// tanh.
package model

// Package model predicts how long a node takes for a number of URLs, by what its machine is, and learns it from
// assignments that are done. It is the model of running time of Zhang, Tan, Chen and Lü, "An Efficient Load Balance
// Strategy for Distributed Crawler System", Computer Engineering 45(11), 2019: a network with six inputs (CPU cores,
// GHz, GB of memory, Mb/s of network and of disk, number of URLs), a hidden layer of tanh units, and one linear
// output, trained by back-propagation of E = (Y - O)²/2.
//
// A [Model] is told samples ([Model.Add]) and trained now and then ([Model.Train]). [Model.Time] makes a function from
// numbers of URLs to seconds, as kumo/internal/cluster/strategy/balance/split takes it. All is plain computation: no clock, no
// file, no goroutine, and the same samples and seed give the same model, on one kind of processor.
//
// # Scaling
//
// Inputs and seconds are scaled to 0 to 1 between the least and the greatest that was learnt from, as in the paper,
// but by their logarithms: times are products of pages and of what a machine has. That divides the error for machines
// that were never seen by two to five (docs/decisions/running-time.md). A fact outside of its range counts as the
// nearer end. Fewer URLs than were ever learnt from, and more, take the same time a page as at that end. Ranges grow
// with samples, and weights are changed so that the network says what it said before.
//
// # Rising
//
// More URLs never take less time, by construction: the weights of a path from the number of URLs to the output are not
// negative, to which each step of training puts them back. So the shortest split can be found exactly.
//
// # Learning
//
// A step is one of Adam over 8 samples, with a learning rate of 0.02, which falls to a hundredth of that along half a
// cosine in each training, and a decay of weights. Training ends after the epochs that were asked for, or when the
// mean of E is below 1e-6. It goes on from the weights that are there. One sample of five is held back: nothing is
// learnt from it but the error that [Report] tells. With fewer than 20 samples to learn from there is no network; a
// node's time is then that of its own pages a second, or of the mean of others' where it has no samples, and [Basis]
// says so. So it is for nodes with samples while at least ten held back say that the network is worse than that.
//
// Samples are bounded in number, and each node has the same share of them: what comes replaces one of the same node,
// drawn at random. With more nodes than an eighth of the samples, those that have been silent for longest are
// forgotten.
//
// # A node's own deviation
//
// This goes beyond the paper. Two machines with the same figures need not be as fast: a disk is old, a neighbour busy.
// So what the network says is multiplied by a factor of the node: from the mean of the logarithms of what its samples
// took by what the network says, in which each counts 0.9 times as much as the next one, as if there were two more
// that took just what it says. So a node without samples has the factor 1, and one that changes has another after
// about ten.
//
// # What else differs from the paper
//
//   - Its rule for the weights has the derivative of a sigmoid; here it is tanh's.
//   - It names the learning rate, the threshold and the number of samples, and gives none.
//   - It trains once; here training goes on while nodes work.
package model

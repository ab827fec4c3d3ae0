// Package balance splits what waits among nodes so that all end together: by how long each is predicted to take, as
// Zhang, Tan, Chen and Lü do in "An Efficient Load Balance Strategy for Distributed Crawler System", Computer
// Engineering 45(11), 2019. A node says what its machine is and what it does; the leader, their master, predicts by a
// model that learns while they work (package model), and splits (package split). The unit of work is the host, or the
// slice of one.
//
// # Pool and pieces
//
// A host that is wanted and nobody's is not given away at once: it is pooled, while its links wait with those who have
// found them, who say how many there are that are to be fetched. Where there is none, as a rule leaves all out, the
// host is its finder's. A node that is about to be done (Lead, or as long as links take to come to it) gets its next
// piece: hosts where half as many URLs wait as its share of all that is pooled (factoring: Hummel, Schonberg and Flynn,
// 1992), so that what is wrong with a prediction can be made good by the pieces after it; in the end, which is sooner
// for whole hosts than for slices, all that is pooled is split at once. As long as nothing is known of any node's pace,
// pieces are an eighth. The pool is bounded; what is more is given at once to the node that would be done with it
// first, which is how the best split is made unit by unit.
//
// A node whose workers are idle though URLs wait has too few hosts: politeness keeps it from the others. It is given as
// many as it has, again and again as long as that makes it faster.
//
// # Learning
//
// A piece that is done is a sample: so many pages, by the node's own counters, in so many seconds, with its machine as
// it was. Samples are in the log, the last 2,048, so a new leader has learnt what the one before had; so does a crawl
// that was given those of another. Pieces in which politeness was the limit are none.
//
// Predictions are corrected by a node's pace of the last ten seconds, which counts the more the more pages it is of: a
// node that becomes slow is taken for slow within seconds.
//
// # Taking back
//
// When nothing is pooled, or the end is near, and moving hosts would have the last node be done sooner by more than
// half of what a move takes (measured), nodes with too much hand hosts over to others, all in one step. Before, only
// what no piece can make good is taken back. What a dead node had comes to heirs, and is split by the same rule.
//
// What nodes tell is old when it comes. So the leader reckons with what it does not count yet: URLs that were given
// count for the receiver until it says that it has queued as many (Load.Taken), for some seconds at most; and those
// that are to move for the receiver, and not for the giver, from when that was asked to give them until they have come.
//
// # Splitters
//
// Exact is the shortest makespan. Swarm is the paper's particle swarm in its place. Even and Hash are what the paper
// compares with: they give hosts to nodes at once, each the same number of links or by the name's hash, and take
// nothing back.
//
// The table of hosts, the log, and what nodes do is package central's; this is its policy.
package balance

// Package balance implements a strategy that distributes pending URLs so that all nodes finish at the same time.
//
// It predicts the running time of each node, as Zhang, Tan, Chen and Lü do in "An Efficient Load Balance Strategy for
// Distributed Crawler System", Computer Engineering 45(11), 2019. Nodes report their machines and their progress. The
// leader, the paper's master, predicts by a model that is trained while they work (package model), and splits the work
// (package split). The unit of work is the host, or a slice of one.
//
// # Pool and pieces
//
// A new host is not assigned at once. It is pooled, while its links stay with their finders, which report how many of
// them are to be fetched. If there are none, because a rule excludes all, the host goes to its finder.
//
// A node that is about to finish gets its next piece. "About to" means within Config.MinWork, for slices a third of it,
// or within the time that links take to reach it. Such a node reports its load several times a second. A piece consists
// of hosts with half as many URLs as the node's share of the whole pool (factoring: Hummel, Schonberg and Flynn, 1992).
// So later pieces can correct errors of a prediction. At the end, which comes sooner for whole hosts than for slices,
// the rest of the pool is split at once. While no node's rate is known, a piece is an eighth.
//
// The pool is bounded. Hosts beyond the bound go at once to the node that would finish them first, which is the best
// split unit by unit.
//
// A node whose workers are idle although it has pending URLs has too few hosts, since politeness delays the others. It
// gets as many hosts as it has, repeatedly while that makes it faster.
//
// # Training
//
// A finished piece is a sample: a number of pages, by the node's own counters, the seconds they took, and the machine
// at that time. Pieces limited by politeness are not samples. The log holds the last 2,048 samples, so a new leader
// starts with the knowledge of the previous one. A crawl can also start with the samples of another.
//
// Predictions are corrected by the node's rate over the last ten seconds, weighted by the number of pages in it. So a
// node that slows down is recognized within seconds.
//
// # Moves
//
// Nodes with too much work hand hosts over to others, all in one step. This happens when the pool is empty or the end
// is near, and only if the last node would finish sooner by more than half of the measured time of a move. Before that,
// only an excess that no piece can correct is moved. Takeover nodes receive the hosts of a dead node; the same rule
// splits them.
//
// Reports of nodes are old when they arrive. So the leader adds what they do not include yet. Assigned URLs count for
// the receiver until it reports that it has queued as many (Load.Enqueued), for some seconds at most. URLs of a move
// count for the receiver, and not for the sender, from the request to the sender until they have arrived.
//
// # Splitters
//
// Exact yields the shortest makespan. Paper is the paper's method: its network and its particle swarm. It splits what
// was pooled within a second, once, by the predictions alone, and moves nothing later. Even and Hash are the paper's
// baselines. They assign hosts at once, by equal numbers of links or by the hash of the name, and move nothing later.
//
// Package central implements the table of hosts, the log and the nodes' part; this package is its policy.
package balance

// Package split says how many of a batch's URLs each node is given. Nodes are functions ([Time]) from a number of
// units of work to seconds, which rise; kumo/internal/cluster/strategy/balance/model makes them. The aim is the makespan: the
// time after which the last node is done.
//
//	Exact       units, shortest makespan; ties to the first node; O(M log(N/M)) evaluations for M nodes and N units
//	Swarm       units, by particle swarm, as in the paper; 3,030 evaluations a node
//	Even        units, alike
//	Hosts       whole hosts, short makespan: at most 1.58 times the shortest where nodes differ in speed alone
//	HashHosts   whole hosts, by a hash of their names
//
// All is plain computation: no clock, no goroutine, no randomness but a seed.
//
// # Source, and what differs
//
// Zhang, Tan, Chen and Lü, "An Efficient Load Balance Strategy for Distributed Crawler System", Computer Engineering
// 45(11), 2019, look for the split with the least variance of the nodes' times by a particle swarm: 30 particles, all
// beginning at the even split, velocities of 0 to 1, inertia 0.8, c1 = c2 = 2. Swarm is that, with these repairs:
//
//   - A lower fitness is better; the paper's steps 3 and 4 take the greater.
//   - Splits have all units and no negative counts, since each is repaired after it moved; the paper adds penalties to
//     the fitness, which leave it open whether they do.
//   - Velocities are rounded to the nearest integer, and bounded by the number of units: they would grow without end.
//   - It ends after 100 iterations; the paper does not say when.
//   - The fitness may be the makespan. The least variance can prefer a longer run: of 100 units for nodes that take n,
//     n and 80n seconds it gives 49, 50 and 1, which take 80 s; 50, 50 and 0 take 50 s.
//
// Of 10,000 random clusters of 2 to 10 nodes and up to 1,000 units (TestSwarm) the swarm's makespan is 1.09 times the
// shortest in the mean, and 4.7 times at worst (5.4 with the makespan as fitness); the even split's is 9 times in the
// mean. With 20 nodes it is 2.4 times, with 100 nodes 9 times, with 1,000 nodes 20 times (BenchmarkSwarm). Exact takes
// a fiftieth of the time or less.
package split

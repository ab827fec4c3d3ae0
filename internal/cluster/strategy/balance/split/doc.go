// Package split computes how many of a batch's URLs each node gets, to minimize the makespan.
//
// The makespan is the time after which the last node is done. A node is an increasing function ([Time]) from a number
// of units of work to seconds; kumo/internal/cluster/strategy/balance/model makes these functions.
//
//	Exact       units, shortest makespan; ties to the first node; O(M log(N/M)) evaluations for M nodes and N units
//	Swarm       units, by particle swarm, as in the paper; 3,030 evaluations a node
//	Even        units, equal numbers
//	Hosts       whole hosts, short makespan: at most 1.58 times the shortest if nodes differ only in speed
//
// The package only computes: it uses no clock, goroutines or randomness except a seed.
//
// # Source and differences
//
// Zhang, Tan, Chen and Lü, "An Efficient Load Balance Strategy for Distributed Crawler System", Computer Engineering
// 45(11), 2019, search for the split with the least variance of the nodes' times by a particle swarm. It has 30
// particles that all start at the even split, velocities from 0 to 1, inertia 0.8, and c1 = c2 = 2. Negative counts and
// a wrong sum are possible, at the price of two penalties. Swarm implements it with these corrections:
//
//   - A lower fitness is better; the paper's steps 3 and 4 select the greater.
//   - The best position is repaired at the end, since penalties do not guarantee a valid split.
//   - Velocities are rounded to the nearest integer. They are bounded by the number of units, and positions from minus
//     that number to twice that number. Otherwise they would grow without bound.
//   - The search ends after 100 iterations; the paper gives no condition.
//   - The fitness may be the makespan. The least variance can prefer a longer run. For 100 units and nodes that take n,
//     n and 80n seconds it yields 49, 50 and 1, which take 80 s; 50, 50 and 0 take 50 s.
//
// On 1,000 random clusters of 2 to 10 nodes and up to 1,000 units (TestSwarm), the swarm's makespan is 1.47 times the
// shortest on average, and 5.6 times at worst (1.95 and 11 with the makespan as fitness). The even split's makespan is
// 8.8 times on average. With 20 nodes the swarm's is 4.6 times, with 100 nodes 12 times, with 1,000 nodes 19 times
// (BenchmarkSwarm). Exact takes a fiftieth of the swarm's time or less.
package split

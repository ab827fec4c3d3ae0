// Package overlay implements Kademlia, an overlay network that finds the nodes closest to any id.
//
// The network has no center: each node knows a few others, and queries nodes that are ever closer to the id. The
// package is a pure state machine, like a strategy: it receives events and returns actions. Clock, network and
// randomness are its caller's. The same code runs over real streams and in virtual time.
//
// Source: Maymounkov and Mazières, "Kademlia: A Peer-to-peer Information System Based on the XOR Metric", 2002.
//
// # As in the paper
//
// Contacts are in k-buckets by the highest bit in which their ids differ from the node's own. A contact that answers
// stays in its bucket. Newer contacts wait in the bucket's replacement cache until one fails to answer. A lookup
// queries Alpha nodes at a time, the closest first. A node that joins looks up its own id, then an id in each bucket
// farther than its nearest neighbor. Old buckets are refreshed by lookups.
//
// # Differences from the paper
//
//   - A bucket has ten contacts, not twenty. They are probed every few minutes, not once an hour.
//   - The overlay stores no values. The caller stores data at the nodes closest to a key.
//   - The id of a node is computed from its name, which the transport has proved. No node can choose or declare its id.
//   - A node enters the table, and the result of a lookup, when it has answered a query of this node. A mention by
//     another node is not enough. So fabricated contacts cost a few queries and displace nothing. A caller that queries
//     the nodes itself can do with mentions.
//   - A node watches its Config.Neighbors nearest nodes, in whichever buckets they are. Each pair exchanges a few
//     bytes every few seconds: that both live, and the versions of their neighbor lists. A list is sent to a neighbor
//     that does not have it. A dead neighbor is detected within Config.Notice. A new node queries its neighbors at
//     once; other nodes that should know it learn of it by the next exchange.
//   - A node knows all nodes of a part of the space. It is the largest set of ids that share a prefix with the node's
//     own id and whose nodes are all its neighbors. These nodes are also each other's neighbors, so none of them misses
//     another. Beyond that part the nearest nodes can be missed: two nodes of one half may each be near to a node of
//     the other half, but not near to each other. While a dead neighbor is being replaced, the part does not grow.
//   - So a node can tell whether it knows the nodes closest to an id: the id and those nodes must be in that part.
//     Closest reports this, and so does the answer to a query of a lookup. The lookup then ends as soon as the wanted
//     nodes have answered, or were reported. Without such a report it continues until the K closest nodes have
//     answered. Reports about a part of the space serve other lookups there for a while.
//   - A lookup queries a node that did not answer once more, after the others. So a lost message does not hide a node.
//   - Nodes that left the table without a farewell are probed now and then. So the parts of a partitioned network find
//     each other again.
//
// # Parts
//
// An [Overlay] routes events and messages to its parts. The exchange has the queries to other nodes, absences the nodes
// that did not answer lately. The table has all contacts, and liveness decides which nodes are in it. The watch has the
// neighbors, lookUps the searches for ids, upkeep the periodic work.
//
// # Limits
//
// Members are trusted to be one node each: an attacker that can join with very many names can surround an id. The
// transport authenticates messages; disjoint paths (S/Kademlia) are not used.
package overlay

// Package overlay is Kademlia (Maymounkov and Mazières, "Kademlia: A Peer-to-peer Information System Based on the XOR
// Metric", 2002): nodes without a centre, each of which knows a few others, and finds those closest to any id by asking
// nodes that are ever closer to it. It is a pure state machine, like a strategy: told what happened, it answers with
// what to do; clock, network and randomness are its caller's. The same code runs over real streams and in virtual time.
//
// # What it has of the paper
//
// Contacts lie in k-buckets by the highest bit in which their ids differ from the node's own. A contact that answers
// stays: who comes later waits in the bucket's replacement cache until one fails to answer. A look-up asks Alpha nodes
// at a time, the closest first. A node that joins looks itself up, then an id in each bucket farther than its nearest
// neighbour; buckets are looked up again when they are old.
//
// # What differs
//
//   - A bucket has ten contacts, not twenty: they are asked whether they live every few minutes, not once an hour.
//   - Nothing is stored: what is kept at the nodes closest to a key is the caller's.
//   - The id of a node is computed from its name, which the transport has proved: nobody chooses or declares one.
//   - A node comes into the table, and into the result of a look-up, when it has answered a question of this node, and
//     not because another has told of it. So made-up contacts cost a few questions and push nothing out. A caller that
//     asks the nodes itself may do with what was told.
//   - Neighbours: a node watches the Config.Neighbours nearest nodes, in whichever buckets they are. It exchanges a few
//     bytes with each every few seconds: word that both live, and the versions of their lists of neighbours; a list is
//     sent to who does not have it. A neighbour that dies is known to be dead within Config.Notice; a newcomer asks its
//     neighbours at once, and who else is to know of it hears of it by the next exchange.
//   - A node knows all nodes of a part of the space: the largest one, of all ids with some first bits of its own, whose
//     nodes are all its neighbours. They are each other's neighbours, too, so that none of them misses another. (The
//     nearest nodes beyond can be missed: two nodes of one half may each be near to a node of the other, and not be
//     near to each other.) While the place of a dead neighbour is filled the part does not become larger.
//   - So a node can tell whether it knows the nodes closest to an id: the id and they must lie in that part. Closest
//     says so, and so does the answer to a question of a look-up, which therefore ends as soon as the nodes that it is
//     to find have answered, or were told. Without such word it goes on until the K closest have. What was told of a
//     part of the space serves other look-ups there for a while.
//   - A look-up asks a node that did not answer once more, after the others: a lost message does not hide a node.
//   - Nodes that left the table without a farewell are asked now and then whether they are back, so that the parts of a
//     network that was cut in two find each other again.
//
// # What is not there
//
// Members are trusted to be one node each: who can enter with very many names can surround an id. Messages are
// authenticated by the transport; disjoint paths (S/Kademlia) are not used.
package overlay

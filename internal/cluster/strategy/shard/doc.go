// Package shard implements a strategy that places hosts on equal nodes by the two-level hash of the crawler Igloo.
//
// Source: Ye, Yu and Ma, 2002. A table has M slots, the largest planned number of nodes, and each node has one slot. A
// first hash maps a host to a slot. If a node has that slot, it owns the host. A second hash spreads the hosts of empty
// slots over all nodes. So every node has 1/N of the hosts, whichever slots are occupied. No node has to be queried,
// and nothing is forwarded.
//
// # Differences from the paper
//
//   - The paper hashes URLs. Here the key is the host, or the host's registered domain, so that one node controls
//     politeness.
//   - The paper takes the second hash mod N. When N changes, nearly all hosts of empty slots move: with M = 16 and N
//     from 4 to 5, 61 % of all hosts, where 20 % would suffice. By default the second level is rendezvous hashing
//     (Thaler and Ravishankar, 1998): the node whose hash with the host is greatest. Then hosts move only to joining
//     nodes and from departed nodes. The paper's form, jump hashing and ring hashing are available for comparison.
//   - The paper's formula is not readable in the copy at hand. That the two hashes are independent is our reading. If
//     both were one number, mod M and mod N, nodes in the slots 0, 2, 4 and 6 of 8 would have 12.5, 37.5, 12.5 and 37.5
//     % of the hosts.
//
// # Minimal movement
//
// With rendezvous hashing, hosts do not move between two nodes that stay. Let A own a host under one list of members,
// and B under another, and let both nodes be in both lists, each in its slot. If the host's slot is that of A or B, it
// is so under both lists, and A is B. Otherwise the slot is empty under both. Then A's hash is greater than B's because
// A won the first time, and B's is greater than A's because B won the second time, unless A is B.
//
// # Stability
//
// The hash functions and the number of slots are part of a crawl's state: if one changed, nodes would disagree. Test
// vectors fix them.
package shard

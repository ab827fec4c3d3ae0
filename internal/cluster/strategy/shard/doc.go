// Package shard places hosts on equal nodes by the two-level hash of the crawler Igloo: Ye, Yu and Ma (2002). There is
// a table of M slots, as many as nodes were ever planned, and each node has one of them. A first hash of a host names a
// slot. Where a node has it, the host is that node's; the hosts of empty slots are spread over all nodes by a second
// hash. So every node has 1/N of the hosts, whichever slots are taken, nobody has to be asked, and nothing is
// forwarded.
//
// What differs from the paper:
//
//   - The paper hashes URLs; here the key is the host, or the host's registered domain, so that politeness is one node's business.
//   - The second hash of the paper is taken mod N. When N changes, nearly all hosts of empty slots move: 61 % of all with M = 16
//     and N from 4 to 5, where 20 % would do. By default the second level is rendezvous hashing (Thaler and Ravishankar, 1998):
//     the node whose hash with the host is greatest. Then hosts move only to nodes that came and from nodes that went. The
//     paper's form is there, and jump and ring hashing, to be compared.
//   - The paper's formula is not readable in the copy at hand. That the two hashes are independent is our reading: were both one
//     number, mod M and mod N, then nodes in the slots 0, 2, 4 and 6 of 8 would have 12.5, 37.5, 12.5 and 37.5 % of the hosts.
//
// Why hosts move no further than they must: let a host be A's under one list of members, and B's under another, and A
// and B be in both, each in its slot. If the host's slot is A's or B's, it is so under both, and A is B. If not, the
// slot is empty under both; A's hash is greater than B's because A won the one, and B's greater than A's because it won
// the other, unless A is B.
//
// The hash functions are part of a crawl's state, as is the number of slots: were one changed, nodes would disagree.
// Test vectors hold them.
package shard

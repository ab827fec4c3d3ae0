// Package hub places hosts by a control unit, as the crawler DSpider does: Wu, Ke, He and Liu. The unit of work is the
// host. Whoever can connect to a host within a time crawls it, so that each host ends at a node that is near it: in a
// LAN all nodes are, and across a WAN each is to some. One node is the control unit, and has a table that says which
// node owns which host.
//
// # A host's way
//
// A node that finds a link to a host it knows no owner of asks the control unit. If the host is nobody's, the control
// unit has it probed: by nodes that have reached hosts of the same domain or network fast, and of those alike by who
// has fewer hosts; by one in a LAN, by several at once across a WAN. Who reaches it within its timeout claims it, and
// the nearest of them gets it, unless it has far more than its share. Who does not says so, and others are asked. When
// all have failed, the host is parked: the node that wanted it first owns it, keeps its links, and asks nothing of it.
// It is tried again, by all, after growing times and with growing timeouts; after some rounds its owner is left alone
// with it, and crawls it as a single node would.
//
// # What differs from the paper
//
//   - The paper's node begins to fetch from a host before it is granted, which makes duplicates where two do. Here only a connection is made
//     and closed. The paper's way is there, as FetchFirst; a node that loses such a race hands over what it has.
//   - The paper drops links to hosts of others. Here they go to the owner.
//   - The paper sends a host that one does not reach to all others at once. Here they are asked one by one; AskAll is the paper's way. It
//     would send a host that nobody reaches round for ever; here it is parked. And it gives a host to whoever claims it first, which is the node that
//     found the first link to it; here all nodes may be asked first.
//   - The paper's control unit is a single point of failure. Here it is elected (package leader): three members follow
//     its log, and one takes its place when it is silent. The log takes an entry only from who has read all others, so a
//     control unit of the past can decide nothing, and no answer leaves before what it says is in the log, on a quorum of
//     servers. Nodes go on with what they own meanwhile.
//   - What is near is learned: a rough domain, the last two labels of a name, and a network, 24 bits of an IPv4 address and 48 of an IPv6 one.
//   - Read literally, the paper's owner is shut out of its own host. Here each claim is answered: yours, or another's.
//   - Its conclusion's advice, larger timeouts for nodes that have little to do, is carried out.
//
// # Load
//
// Where a node has nothing to do, or far too little, others offer it hosts where many URLs wait (level.go says who and
// how many, offer.go who gets them).
//
// The table, the log and what nodes do is package central's; this is its policy.
package hub

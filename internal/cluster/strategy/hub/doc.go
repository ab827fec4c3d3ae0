// Package hub implements a strategy that assigns each host to a near node, by a control unit.
//
// It follows the crawler DSpider of Wu, Ke, He and Liu. The unit of work is the host. A node that can connect to a host
// within a timeout crawls it, so each host ends at a near node. In a LAN all nodes are near; across a WAN each host is
// near to some nodes. One node is the control unit and stores the table of host owners.
//
// # Assignment of a host
//
// A node that finds a link to a host without a known owner queries the control unit. If no node owns the host, the
// control unit has nodes probe it. It prefers nodes that have reached hosts of the same domain or network fast, and
// among similar ones those with fewer hosts. In a LAN it selects one node, across a WAN several at once.
//
// A node that reaches the host within its timeout claims it. The nearest of them gets the host, unless it has far more
// than its share. A node that fails reports that, and others are queried.
//
// If all have failed, the host is parked: the first node that wanted it owns it, stores its links, and sends it no
// requests. All nodes try it again, after growing delays and with growing timeouts. After some rounds only its owner is
// left, and crawls it as a single node would.
//
// # Differences from the paper
//
//   - The paper's node starts to fetch from a host before it is granted. This makes duplicates if two nodes do so. Here
//     a node only opens and closes a connection. FetchFirst selects the paper's way; a node that loses such a race
//     hands over what it has.
//   - The paper drops links to hosts of other nodes. Here they go to the owner.
//   - The paper offers a host that one node cannot reach to all others at once. Here they are queried one by one;
//     ProbeAll selects the paper's way.
//   - The paper would pass a host that no node reaches around forever. Here it is parked.
//   - The paper assigns a host to the first node that claims it, which is the node that found the first link to it.
//     Here all nodes may be queried first.
//   - The paper's control unit is a single point of failure. Here it is elected (package leader). Three members follow
//     its log, and one of them replaces it when it is silent. The log accepts an entry only from a writer that has read
//     all others, so a former control unit can decide nothing. No answer is sent before its decision is in the log, on
//     a quorum of servers. Meanwhile nodes continue with the hosts that they own.
//   - Proximity is learned for groups of hosts: for an approximate domain, the last two labels of a name, and for a
//     network, 24 bits of an IPv4 address or 48 of an IPv6 address.
//   - Read literally, the paper shuts the owner out of its own host. Here the answer to each claim names the owner.
//   - The paper's conclusion recommends larger timeouts for nodes with little work. Here this is implemented.
//
// # Load
//
// If a node has no work, or far too little, others offer it hosts with many pending URLs. balancer.go selects the nodes
// and the amounts, offer.go the receivers.
//
// Package central implements the table, the log and the nodes' part; this package is its policy.
package hub

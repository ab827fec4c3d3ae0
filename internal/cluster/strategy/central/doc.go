// Package central implements strategies in which an elected leader assigns hosts one by one.
//
// The leader, one of the nodes, stores the table of host owners. A [Policy] selects the owner of a host;
// kumo/internal/cluster/strategy/hub and kumo/internal/cluster/strategy/balance are two policies.
//
// # Assignment of a host
//
// A node that finds a link to a host without a known owner queries the leader repeatedly. Meanwhile the link stays in
// the node's outbox. If no node owns the host, the policy assigns it to a node, has nodes probe it first (connect and
// close), or lets it wait.
//
// The decision is written to the log, on a quorum of servers, before any node learns it. Then the leader informs the
// owner and the requesting node. The owner of a parked host cannot reach it: the owner stores its links, and sends it
// no requests.
//
// # Owners and holders
//
// The owner of a host crawls it; the holder has its state. Except for short times they are the same node. If another
// node owns a host, its holder hands it over. Takeover nodes (kumo/internal/cluster/member) receive the hosts of a dead
// node and report them to the leader. They become the owners, unless a host has another owner already. Until all of
// them have reported, the leader assigns none of the dead node's hosts.
//
// # Leader
//
// The leader is elected (package leader). Three members follow its log, and one of them replaces the leader when it is
// silent. The log accepts an entry only from a writer that has read all others, so a former leader can decide nothing.
// Meanwhile nodes continue with the hosts that they own. The log contains the table and the policy's persistent state.
// Nodes report pending operations again to a new leader.
//
// # Load
//
// Nodes report their load to the leader every beat. A policy may have a node offer some of its hosts to another
// (offer.go). The first hosts of a crawl wait a moment until all nodes have joined.
//
// All of this is one state machine in each node, a [strategy.Strategy]. Clock, network, log and connections are its
// caller's.
package central

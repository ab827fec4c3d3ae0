// Package central places hosts one by one: a leader, one of the nodes, keeps a table that says which node owns which
// host. A [Policy] decides whose a host is to be; kumo/internal/cluster/strategy/hub and kumo/internal/cluster/strategy/balance are
// two.
//
// # A host's way
//
// A node that finds a link to a host it knows no owner of asks the leader, again and again, and its link waits in its
// outbox. Where the host is nobody's the policy gives it to a node, or has nodes probe it first (make a connection and
// close it), or lets it wait. What is decided is in the log, on a quorum of servers, before anybody is told; then the
// owner is told, and who asks. A host that is parked is its owner's, who does not reach it: it keeps the links, and
// asks nothing of the host.
//
// # What is held
//
// A host's owner is who crawls it; its holder has what is known of it, and the two are one but for a while. What a dead
// node held comes to heirs (kumo/internal/cluster/member), who tell the leader: then it is theirs, if nobody else's. Until all
// have told, nobody is given a host that was the dead one's. Who holds a host that another owns hands it over.
//
// # The leader
//
// It is elected (package leader): three members follow its log, and one takes its place when it is silent. The log
// takes an entry only from who has read all others, so a leader of the past can decide nothing. Nodes go on with what
// they own meanwhile. The log has the table, and what the policy wants to outlive a leader; what is under way is told
// anew by the nodes.
//
// # Load
//
// Nodes tell the leader every beat how much they have to do. A policy may have a node offer some of its hosts to
// another (offer.go). The first hosts of a crawl wait a moment until all nodes have come.
//
// All of this is one state machine a node, a [strategy.Strategy]: clock, network, log and connections are its caller's.
package central

// Package mesh implements membership without a center: no registry, no leader, no table of members.
//
// It follows the crawler of Huang, Zeng and Chen on Kademlia, and closes the gaps of the paper.
//
// # Roles for a host
//
// Every node and every host is a point in the space of [kumo/internal/base/xor]. A host has two points. The live node
// closest to the first is the host's target, and fetches it. The Config.Backups live nodes closest to the second are
// its backups, and store which of its URLs are known. So the record of a URL and the node that fetches it are separate,
// and one of the two survives.
//
// A URL passes through these steps:
//
//   - The node that finds links offers them to the first backup, in batches by host, and stores them until they are
//     claimed.
//   - The first backup enters the new URLs into its history as dispatched, and has the other backups do the same. They
//     answer which URLs they had before. So a backup that has just become the first, and has little history yet, does
//     not treat a URL as new that another backup has.
//   - The first backup then has the target fetch the new URLs. The finder drops its links when all backups have them on
//     disk.
//   - The target reports the URLs that it has fetched to the first backup. That backup marks them as done, and has the
//     others mark them.
//
// A URL that is dispatched and not done is dispatched again when its target is gone, or reports that it no longer has
// the URL. All steps are idempotent, since a target has its own URL database of the URLs that it has met.
//
// A host gets a new target when a closer node joins. The old target stops, reports what it has fetched, names the new
// target, and forgets the host. Nothing else moves: the first backup has the pending URLs and dispatches them again.
//
// So no URL is lost under one condition. One of a host's backups must keep its disk until the others have noticed
// failed backups and have copied their data to replacements. This takes some seconds and the time of the copies. If
// fewer than Config.Backups nodes are left, there are no replacements. Nodes that stay away for Config.AbsentWait then
// count as lost (see absences).
//
// To find out that it is the closest, a node needs no table of all nodes. A node in the bucket of a bit differs from
// this node first in that bit. So it is closer to all ids that differ from this node in that bit, and farther from all
// others. Therefore a node is the closest to an id if and only if the two differ in no bit whose bucket is occupied.
//
// # Parts
//
// A [Machine] passes events and messages to its parts. Each part guards one protocol with its own state. core, place,
// mail, lookups and history serve the others. A host's backups are claims, agreements, openHosts with checks and marks,
// reviews, recalls, copies with transfers, absences and disclosure. A host's target is holdings with reports,
// handovers and cookieSharing, and lending with a balancePolicy; routes serves the nodes that find links. All nodes
// together are gossip, counts, gatherings and termination, and risks with riskLists and wards.
//
// # Differences from the paper
//
//   - The paper queries and records with two messages. Here a claim is one message, and atomic.
//   - The paper records a URL when the target receives it, and loses it when the target dies. Here a URL is dispatched
//     until it is done.
//   - The paper's key is the URL. Here it is the host, for politeness.
package mesh

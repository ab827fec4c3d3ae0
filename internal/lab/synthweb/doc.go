// Package synthweb serves a synthetic web generated from a seed, and scores the clients that crawl it. The web is a
// graph of hosts, pages and links, and an HTTP server on loopback serves it. Crawl tests, the demo and benchmarks use
// the score.
//
// # Structure
//
// No page is stored. A resource is a [Ref] (host, kind, number). Its path, links, size and bytes are computed from a
// hash of the seed and the Ref.
//
// The pages of a host form a tree below "/" in which every page links to its children, so all pages are reachable. The
// front pages form such a tree below the first host's front page. Additional links follow a power law, and most of them
// stay within the host.
//
// A page can have companions, such as a redirect, a missing page, a forbidden page or a copy of itself. [Kind] lists
// them; a new kind is a row in its table.
//
// # Use
//
// [Web] is the graph, and [Truth] is the set of resources that a correct crawler fetches. [Server] serves the web over
// HTTP or HTTPS, and DNS. [Score] has the results. If time or order is uncertain, the score favors the client, so that
// each reported violation is real.
package synthweb

// Package synthweb is a web made from a seed: a graph of hosts, pages and links, and an HTTP server on loopback that
// serves it and keeps score of what its clients do. Crawl tests, demo and benchmarks judge by that score.
//
// The one idea: nothing is stored. A resource is a [Ref] (host, kind, number), and whatever is known of it — its path,
// its links, its size, its bytes — is computed from a hash of the seed and the Ref. The pages of a host form a tree
// below "/" in which every page names its children, so all of them can be reached; the front pages form such a tree
// below the first host's. On top lie links drawn with a power law, most of them within the host. Each page may also
// have companions: a redirect, a missing page, a forbidden one, a copy of itself and so on; [Kind] lists them, and a
// new one is a row in its table.
//
// [Web] is the graph, [Truth] what a right crawler fetches of it, [Server] the web over HTTP or HTTPS, and DNS, [Score]
// its judgement. Where time or order is in doubt the score gives the client the benefit, so that a violation is always
// one.
package synthweb

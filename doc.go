// Package kumo crawls the web.
//
// A crawl of one site is a few lines:
//
//	c := kumo.New(kumo.Depth(2))
//	c.OnPage(func(p *kumo.Page) { fmt.Println(p.Status, p.URL, p.Title) })
//	err := c.Run(context.Background(), "https://example.com/")
//
// It is polite without being told: one connection and one second between requests a host, robots.txt obeyed, private
// addresses refused unless a seed names one. [Out] keeps everything as WARC and makes the crawl one that survives a
// crash. The command kumo, in cmd/kumo, is built on the same parts and can do more; kumo crawl --help lists it.
//
// # The house
//
// Everything but this package is internal on purpose: it may change. ARCHITECTURE.md is the plan. To find your way,
// follow one URL: the comment of package internal/crawl tells its life step by step, in the order of the code, and
// names the package that each step lives in. A room imports only rooms on floors below it, and the linter holds that:
//
//	wire                                configuration → objects; the only place that chooses implementations
//	progress web check                  what a person sees of a running crawl | each reader by itself
//	crawl                               the engine: the loop of one node
//	frontier fetch parse store          which host next | one HTTP exchange | bytes → page | records on disk
//	seen robots journal page            URLs ever met | robots.txt | the log that survives | plain data
//	weburl mime chardet                 URLs and scope | media types | charsets
//	stats vfs synthweb                  counters | the local disk | a made-up web that keeps score
package kumo

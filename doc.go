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
// Everything but this package is internal on purpose: it may change. ARCHITECTURE.md is the plan: which rooms there are,
// what each may import, and the way of a URL through them. In the code the comment of package internal/crawl tells that
// way, in its order.
package kumo

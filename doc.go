// Package kumo crawls the web.
//
// A crawl of one site is a few lines:
//
//	c := kumo.New(kumo.Depth(2))
//	for p, err := range c.Pages(ctx, "https://example.com/") {
//		if err != nil {
//			log.Print(err)
//			continue
//		}
//		fmt.Println(p.Status, p.URL, p.Title)
//	}
//
// or, with callbacks, [Crawler.OnPage] and [Crawler.Run].
//
// It is polite without being told: one connection and one second between requests a host, robots.txt obeyed, private
// addresses refused, but for a seed's host. Links are followed by themselves, within the [Scope]; [Crawler.OnLink] has
// a word on each, [Crawler.OnRequest] on each request. [Out] keeps everything as WARC and makes the crawl one that
// survives a crash, [Keep] puts pages into a store of the program's. The command kumo, in cmd/kumo, is built on the
// same parts and can do more; kumo crawl --help lists it. docs/library.md has a table for who knows Colly or Scrapy.
//
// # The house
//
// Everything but this package is internal on purpose: it may change. ARCHITECTURE.md is the plan: which rooms there
// are, what each may import, and the way of a URL through them. In the code the comment of package internal/engine/crawl tells
// that way, in its order.
package kumo

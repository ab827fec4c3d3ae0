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
// Programs that prefer callbacks use [Crawler.OnPage] and [Crawler.Run].
//
// # Defaults
//
// A crawler is polite by default. It opens one connection per host, waits one second between requests and obeys
// robots.txt. It refuses private addresses, except for the hosts of seeds. It follows links within the [Scope].
//
// [Crawler.OnLink] can change or drop each link, and [Crawler.OnRequest] each request. [Out] stores the crawl as WARC
// files and lets it resume after a crash. [Keep] passes pages to a store of the program.
//
// The command kumo, in cmd/kumo, uses the same parts and has more features; kumo crawl --help lists them. If you know
// Colly or Scrapy, docs/reference/library.md compares the APIs.
//
// # Internal packages
//
// All other packages are internal, because their APIs can change. ARCHITECTURE.md describes the packages and their
// allowed imports. The comment of package internal/engine/crawl describes the path of a URL through the code.
package kumo

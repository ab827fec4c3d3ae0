// Package render runs the scripts of pages in a browser, and returns the pages as a user sees them.
//
// The browser is Chromium, controlled by its DevTools protocol. It has no network: each request that a page makes is
// paused and answered by an [Answerer], so that robots.txt, delays, limits, private addresses and records stay the
// crawl's. All network access of the browser itself leads to a proxy that does not exist. So what cannot be paused
// fails: WebSockets, shared and service workers, and other windows. [Result] counts these.
//
// Pausing covers a page's document, resources, frames and dedicated workers, as long as they share the page's process.
// So the browser runs without site isolation: a page can read other sites' responses if it exploits the renderer. It
// has no cookies or storage of other pages, since each page has a browser context of its own.
package render

// Package clusterdemo runs a cluster as processes on this machine: nodes crawl a synthetic web while some of them join,
// leave and are killed, and its servers score the crawl.
package clusterdemo

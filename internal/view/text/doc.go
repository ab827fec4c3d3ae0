// Package text prints what is known of a crawl or a cluster as tables and lines for people.
//
// Each function takes an answer of package inspect, or links, and a writer. Widths of terminals are arguments.
package text

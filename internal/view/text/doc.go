// Package text prints information about a crawl or a cluster as tables and lines for users.
//
// Each function takes a result of package inspect or links, and a writer. Widths of terminals are arguments.
package text

// Package report prints the results of experiments as tables, and writes them to a folder as CSV and SVG for kumo
// serve. The same results give the same bytes.
package report

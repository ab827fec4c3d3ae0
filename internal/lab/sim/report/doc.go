// Package report prints the results of experiments as tables, and writes them to a folder as CSV and SVG.
//
// The tables are read by people, the folder by kumo serve. The same results give the same bytes.
package report

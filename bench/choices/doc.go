// Package choices compares kumo's own implementations with libraries that could replace them. It reproduces the
// measurements in docs/decisions. It is a separate module, so that kumo depends on none of these libraries.
//
//	go test -C bench/choices -run '^$' -bench Inflate         measure the cost
//	KUMO_TEST_DATA=... go test -C bench/choices -v -run URL    compare results on conformance data
//
// In a benchmark, all contenders do the same work in turns, so that other load affects all alike. It prints a table:
// CPU time per unit of work (median over the rounds), ratio to kumo's (median of the rounds' ratios), and allocations.
// Pages are those of a synthetic web, or the files in the folder KUMO_TEST_HTML.
package choices

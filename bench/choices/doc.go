// Package choices compares what kumo has written itself with the libraries that could stand in its place: what
// docs/decisions says was measured is measured here. It is a module of its own, so that kumo depends on none of them.
//
//	go test -C bench/choices -run '^$' -bench Inflate         what it costs
//	KUMO_TEST_DATA=... go test -C bench/choices -v -run URL    who reads the conformance data how
//
// A benchmark lets all contenders do the same work by turns, so that what else the machine does meets all alike, and
// prints a table: processors' time of a unit of work (medians over the rounds), its ratio to kumo's (the median of the
// rounds' ratios), allocations. Pages are those of a synthetic web; where KUMO_TEST_HTML names a folder, those in it.
package choices

// Package batch is a crawl by layers, as MapReduce jobs: the design of a thesis of 2011 that crawled news sites in 27
// languages for 259 days on a Hadoop cluster of ordinary PCs.
//
// A collection (package collection) begins with its seeds. A round crawls one layer of the web below them:
//
//	job       in                        out     what it does
//	crawl     in/, round 0: known/      doc/    fetches; one Document a response
//	parse     doc/ of the round         out/    OutLinks of each Document: its links that pass the rules
//	optimize  out/ of all rounds        in/     URLs that were met and not yet fetched: the next round
//
// When a round finds nothing new, or the depth is reached, the day ends:
//
//	merge     doc/ of all rounds        doc/    one Document a URL; with known/, what is known of each URL from now on
//	xml       doc/                      xml/    headline and main text of each page, for who searches them; fields/, records
//	                                            by the collection's rules
//
// Each job is a [Job]: plain functions over records, made from a [Conf] that can be written down. So a [Runner] may run
// its tasks in this process (batch/local) or elsewhere (Hadoop Streaming, whose tasks are "kumo batch task"). The
// [Pipeline] runs the jobs one after the other and remembers in the place how far each collection is.
//
// What differs from the thesis: robots.txt is obeyed and asked once a day a host; a daily run asks servers only for
// what has changed, by what known/ says of the day before; out/ is read over all rounds, as otherwise pages of earlier
// layers come again; a redirect makes a Document of its own, and where it leads waits for the next round, unless it is
// on the same host and the round is the first: so a host is only ever asked by the one task that has it, and no URL is
// fetched twice in a day; tasks are balanced by the time that politeness makes them take. Collections that are run
// together share each job.
package batch

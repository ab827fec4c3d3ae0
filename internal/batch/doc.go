// Package batch crawls the web in layers, as a series of MapReduce jobs. The design comes from a thesis of 2011. Its
// crawler fetched news sites in 27 languages for 259 days on a Hadoop cluster of ordinary PCs.
//
// A collection (package collection) starts with its seeds. Each round crawls one layer of links below them:
//
//	job       input                       output  purpose
//	crawl     in/, round 0: known/        doc/    fetches URLs; writes one Document per response
//	parse     doc/ of the round           out/    extracts the OutLinks of each Document that pass the rules
//	optimize  out/ of all rounds, known/  in/     selects URLs found and not yet fetched, for the next round
//
// When a round finds nothing new, or the maximum depth is reached, the day ends with two jobs:
//
//	merge     doc/ of all rounds, known/  doc/    keeps one Document per URL; writes known/, the new state of each URL
//	xml       doc/                        xml/    writes headline and main text of each page, for search; other/ has
//	                                              pages in other languages, fields/ records by the collection's rules
//
// Each job is a [Job]: plain functions over records, created from a serializable [Conf]. A [Runner] can therefore run
// its tasks in this process (batch/local) or elsewhere (Hadoop Streaming, which runs "kumo batch task"). The [Pipeline]
// runs the jobs in order and saves the progress of each collection in the storage location.
//
// # Differences from the thesis
//
//   - The crawl obeys robots.txt, and fetches it once a day per host.
//   - A daily run requests only changed content, based on known/ of the day before.
//   - The job optimize reads out/ of all rounds. Otherwise pages of earlier layers would be fetched again.
//   - A redirect produces its own Document. Its target waits for the next round, except for targets on the same host in
//     the first round. So only one task contacts a host, and no URL is fetched twice in a day.
//   - Tasks are balanced by the time that politeness makes them take.
//   - Collections that run together share each job.
package batch

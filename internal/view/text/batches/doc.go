// Package batches prints what batch crawls contain: collections, days, pages, URLs and statistics.
package batches

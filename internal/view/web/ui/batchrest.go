package ui

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Endpoints for batch crawls. Their answers are defined in batches.go, batchdays.go and so on.

var (
	batchParam      = param{"path", "batch", "string", "the name of the batch crawls, as listed by /batches", true}
	collectionParam = param{"path", "collection", "string", "the collection's code or directory", true}
	ofOneParam      = param{"query", "collection", "string", "only the collection with this code or directory", false}
	otherParam      = param{"query", "of", "string", "other: pages in other languages, which are stored separately",
		false}
	dayParam = param{"path", "day", "string", "the day: 2026-11-21, or last", true}
)

const aDay = "/batches/{batch}/collections/{collection}/days/{day}"

// endpoints returns the endpoints for batch crawls.
func (set *batchSet) endpoints() []endpoint {
	return []endpoint{
		{"/batches", "batches", "The storage locations of batch crawls.", nil, batchList{},
			func(r *http.Request) (any, error) { return batchList{set.entries(r.Context())}, nil }},
		{"/batches/{batch}", "collections", "The collections in a storage location of batch crawls, sorted by " +
			"directory.",
			[]param{batchParam, after, limitParam}, batchAnswer{}, listWithTarget(set.find, getBatch)},
		{"/batches/{batch}/days", "days",
			"Results of days of collections: newest first, those of a day in the order of the collections' " +
				"directories.",
			[]param{batchParam, ofOneParam, after, limitParam}, dayList{}, listWithTarget(set.find, getDays)},
		{"/batches/{batch}/search", "batchSearch",
			"XML records by words, on all days or some, newest day first, those of a day sorted by URL. " +
				"A limited part is scanned: then the answer has \"cut\", and \"next\" continues.",
			[]param{batchParam, ofOneParam, otherParam,
				{"query", "words", "string",
					"words that must occur, all of them, ignoring case: in URL, headline or text", false},
				{"query", "day", "string", "only this day, as 2026-11-26, or this month, as 2026-11", false},
				{"query", "cursor", "string", "where to continue: \"next\" of the previous answer", false},
				limitParam}, recordsFound{}, listWithTarget(set.find, getBatchSearch)},
		{aDay, "day", "A day of a collection: its progress, results, jobs and files.",
			[]param{batchParam, collectionParam, dayParam}, dayAnswer{},
			withTarget(set.day, batchDay.answer)},
		{aDay + "/records", "dayRecords",
			"The XML records of a completed day, sorted by URL. An answer may contain few records or none and still " +
				"have a next one.",
			[]param{batchParam, collectionParam, dayParam, otherParam,
				{"query", "find", "string", "only records with this text in URL, headline or text, ignoring case",
					false},
				{"query", "cursor", "integer", "where to continue: \"next\" of the previous answer", false},
				limitParam}, entryPage{}, withTarget(set.day, batchDay.records)},
		{aDay + "/record", "dayRecord",
			"The outcome of a URL on a day: its answer, its XML record, and its text. For an unchanged page, the " +
				"record of an earlier day.",
			[]param{batchParam, collectionParam, dayParam, urlParam}, batchRecord{},
			withTarget(set.day, batchDay.record)},
		{aDay + "/page", "dayPage", "The text of a day's page. For an unchanged page, the text of an earlier day.",
			[]param{batchParam, collectionParam, dayParam, urlParam,
				{"query", "as", "string", "markdown (default), generated from the page; text or xml: from the day's " +
					"record; headers: the header fields", false},
				offsetParam, bytesParam}, batchPart{}, withTarget(set.day, batchDay.text)},
	}
}

// A batchSet contains the storage locations of batch crawls, in order. It does not change; each guards its own state.
type batchSet struct{ all []*batches }

func newBatchSet(done context.Context, all []Batch, several bool) *batchSet {
	set := &batchSet{}
	for _, b := range all {
		where := b.Name
		if strings.Contains(where, "://") {
			where, _, _ = strings.Cut(where, "?") // options are not part of the name
		}
		name := freeName(where, func(name string) bool { return set.named(name) != nil })
		q := newQueue("The storage location of batch crawls "+name, b.Name, several)
		set.all = append(set.all, newBatches(done, name, b, q))
	}
	return set
}

func (set *batchSet) named(name string) *batches {
	if i := slices.IndexFunc(set.all, func(b *batches) bool { return b.name == name }); i >= 0 {
		return set.all[i]
	}
	return nil
}

// find returns the batch crawls in a path.
func (set *batchSet) find(r *http.Request) (*batches, error) {
	if b := set.named(r.PathValue("batch")); b != nil {
		return b, nil
	}
	return nil, &problem{http.StatusNotFound, "There are no such batch crawls", "/api/v1/batches lists all"}
}

// collection returns the collection in a path, without a date.
func (set *batchSet) collection(r *http.Request) (d batchDay, err error) {
	if d.batches, err = set.find(r); err == nil {
		d.c, err = d.batches.collection(r.Context(), r.PathValue("collection"))
	}
	return d, err
}

// day returns the day in a path.
func (set *batchSet) day(r *http.Request) (batchDay, error) {
	d, err := set.collection(r)
	if err != nil {
		return d, err
	}
	if d.date = r.PathValue("day"); d.date == "last" {
		d.date = d.c.LastDate()
	}
	if !d.c.Has(d.date) {
		err = &problem{http.StatusNotFound, "The collection has no such day",
			fmt.Sprintf("its days are from %s to %s", d.c.Dates[0], d.c.LastDate())}
	}
	return d, err
}

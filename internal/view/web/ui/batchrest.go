package ui

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// What programs ask of batch crawls; what they get is in batches.go, batchdays.go and so on.

var (
	batchParam      = param{"path", "batch", "string", "the batch crawls' name, as /batches lists it", true}
	collectionParam = param{"path", "collection", "string", "the collection's code or directory", true}
	ofOneParam      = param{"query", "collection", "string", "only of the collection with this code or directory", false}
	otherParam      = param{"query", "of", "string", "other: pages in other languages, which were kept apart", false}
	dayParam        = param{"path", "day", "string", "the day: 2026-11-21, or last", true}
)

const aDay = "/batches/{batch}/collections/{collection}/days/{day}"

// endpoints are those for programs' requests about batch crawls.
func (set *batchSet) endpoints() []endpoint {
	return []endpoint{
		{"/batches", "batches", "The places of batch crawls that are shown.", nil, batchList{},
			func(r *http.Request) (any, error) { return batchList{set.entries(r.Context())}, nil }},
		{"/batches/{batch}", "collections", "The collections of a place of batch crawls, in the order of their directories.",
			[]param{batchParam, after, limitParam}, batchAnswer{}, listWithTarget(set.find, getBatch)},
		{"/batches/{batch}/days", "days",
			"What days of collections came to: the newest first, and those of a day in the order of the collections' " +
				"directories.",
			[]param{batchParam, ofOneParam, after, limitParam}, dayList{}, listWithTarget(set.find, getDays)},
		{"/batches/{batch}/search", "batchSearch",
			"XML records by words, of all days or of some, the newest day first, and those of a day in the order of URLs. " +
				"A bounded part of them is gone through: \"cut\" says so, and \"next\" goes on.",
			[]param{batchParam, ofOneParam, otherParam,
				{"query", "words", "string",
					"words that have to be there, all of them, in whatever case: in URL, headline or text", false},
				{"query", "day", "string", "only of a day such as 2026-11-26, or of a month such as 2026-11", false},
				{"query", "cursor", "string", "where to go on: \"next\" of the answer before", false},
				limitParam}, recordsFound{}, listWithTarget(set.find, getBatchSearch)},
		{aDay, "day", "A day of a collection: how far it is, what it came to, its jobs, and its files.",
			[]param{batchParam, collectionParam, dayParam}, dayAnswer{},
			withTarget(set.day, batchDay.answer)},
		{aDay + "/records", "dayRecords",
			"The XML records of a day that is done, in the order of URLs. A page of the list may have few or none, and yet a " +
				"next one.",
			[]param{batchParam, collectionParam, dayParam, otherParam,
				{"query", "find", "string", "only those that have this in URL, headline or text, whatever the case", false},
				{"query", "cursor", "integer", "where to go on: \"next\" of the answer before", false},
				limitParam}, entryPage{}, withTarget(set.day, batchDay.records)},
		{aDay + "/record", "dayRecord",
			"What came of a URL on a day: its answer, its XML record, and its text. Of a page that is unchanged the record of " +
				"the day that has it.",
			[]param{batchParam, collectionParam, dayParam, urlParam}, batchRecord{},
			withTarget(set.day, batchDay.record)},
		{aDay + "/page", "dayPage", "A page of a day, to read. Of one that is unchanged the text of the day that has it.",
			[]param{batchParam, collectionParam, dayParam, urlParam,
				{"query", "as", "string", "markdown (unless given), made of the page anew; text or xml: as the day's record " +
					"has it; headers: the header fields", false},
				offsetParam, bytesParam}, batchPart{}, withTarget(set.day, batchDay.text)},
	}
}

// A batchSet is the storage locations of batch crawls, in their order. It does not change; each guards its own state.
type batchSet struct{ all []*batches }

func newBatchSet(done context.Context, all []Batch, several bool) *batchSet {
	set := &batchSet{}
	for _, b := range all {
		where := b.Name
		if strings.Contains(where, "://") {
			where, _, _ = strings.Cut(where, "?") // whose options are no part of the name
		}
		name := freeName(where, func(name string) bool { return set.named(name) != nil })
		q := newQueue("The place of batch crawls "+name, b.Name, several)
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

// query returns the batch crawls that a path names.
func (set *batchSet) find(r *http.Request) (*batches, error) {
	if b := set.named(r.PathValue("batch")); b != nil {
		return b, nil
	}
	return nil, &problem{http.StatusNotFound, "There are no such batch crawls here", "/api/v1/batches lists all"}
}

// collection returns the collection that a path names, without a date.
func (set *batchSet) collection(r *http.Request) (d batchDay, err error) {
	if d.batches, err = set.find(r); err == nil {
		d.c, err = d.batches.collection(r.Context(), r.PathValue("collection"))
	}
	return d, err
}

// day returns the day that a path names.
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

package batch

import (
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/varint"
	"kumo/internal/content/policy"
)

// Known is what is known of a URL from the days before, for the next one: whether it is due, and what to ask its
// server.
type Known struct {
	Collection, URL string // the key

	Depth   int
	Seed    bool
	First   time.Time // when it was fetched first
	Visits  policy.Visits
	Status  int // of the last answer that said something of the page
	Changes int // visits that found another page

	Digest   page.Digest // of the last page
	ETag     string
	Modified time.Time // Last-Modified
	Stored   Stored    // of the last page
}

// Key is the record's key.
func (k *Known) Key() []byte { return Key(k.Collection, k.URL) }

// Append appends the record's value.
func (k *Known) Append(b []byte) []byte {
	w := startValue(b, KindKnown)
	w.Uint(uint64(k.Depth))
	w.Bool(k.Seed)
	putTime(&w, k.First)
	putTime(&w, k.Visits.Last)
	putTime(&w, k.Visits.Due)
	w.Uint(uint64(max(k.Visits.Every, 0)))
	w.Uint(uint64(k.Visits.Missing))
	w.Uint(uint64(k.Status))
	w.Uint(uint64(k.Changes))
	putArray(&w, k.Digest)
	w.String(k.ETag)
	putTime(&w, k.Modified)
	k.Stored.put(&w)
	return w
}

// ReadKnown reads a record.
func ReadKnown(key, value []byte) (k Known, err error) {
	r, err := openRecord(key, value, KindKnown, &k.Collection, &k.URL)
	if err != nil {
		return k, err
	}
	k.Depth, k.Seed = count(r.Uint()), r.Bool()
	k.First = getTime(r)
	k.Visits = policy.Visits{Last: getTime(r), Due: getTime(r), Every: time.Duration(r.Uint() & (1<<63 - 1)),
		Missing: count(r.Uint())}
	k.Status, k.Changes = count(r.Uint()), count(r.Uint())
	k.Digest = getArray[page.Digest](r)
	k.ETag, k.Modified = r.String(), getTime(r)
	k.Stored = getStored(r)
	return k, checkRead(r, KindKnown)
}

// Stored names the Document of a URL that has the body of what later ones found unchanged. The zero value names none.
type Stored struct {
	Time time.Time // the Document's
	// Chunked is the SHA-1 of its body with its chunks; zero if it came without.
	Chunked page.Digest
}

func (s *Stored) put(w *varint.Writer) {
	putTime(w, s.Time)
	putArray(w, s.Chunked)
}

func getStored(r *varint.Reader) Stored {
	return Stored{Time: getTime(r), Chunked: getArray[page.Digest](r)}
}

// sharedCode is the code of what is of no collection's.
const sharedCode = "-"

// RobotsRecord are what an origin's robots.txt answered, kept for the rest of the day. The key is the origin.
type RobotsRecord struct {
	Origin string // "https://example.com"

	Time   time.Time
	Status int    // 0: no answer
	Body   []byte // decoded
	// RedirectTo is where the robots.txt redirects to, if that is a host of another task: it is asked for in the next round,
	// and gives another record. "" if this is the answer.
	RedirectTo string
	// Exchange is the request and what was answered, as a Document of no collection, whose URL is not the origin's own
	// where another one has redirected to it. It has neither URL nor Raw where there was no answer.
	Exchange Document
}

// Key is the record's key.
func (r *RobotsRecord) Key() []byte { return []byte(r.Origin) }

// Append appends the record's value.
func (r *RobotsRecord) Append(b []byte) []byte {
	w := startValue(b, KindRobots)
	putTime(&w, r.Time)
	w.Uint(uint64(r.Status))
	w.Bytes(r.Body)
	w.String(r.RedirectTo)
	w.String(r.Exchange.URL)
	if r.Exchange.URL != "" {
		w.Bytes(r.Exchange.Append(nil))
	}
	return w
}

// ReadRobotsRecord reads a record. Body and Exchange are parts of value.
func ReadRobotsRecord(key, value []byte) (rules RobotsRecord, err error) {
	r, err := openValue(value, KindRobots)
	if err != nil {
		return rules, err
	}
	rules = RobotsRecord{Origin: string(key), Time: getTime(r), Status: count(r.Uint()), Body: r.Bytes(),
		RedirectTo: r.String()}
	if url := r.String(); url != "" {
		value := r.Bytes()
		if r.Bad {
			return rules, checkRead(r, KindRobots)
		}
		if rules.Exchange, err = ReadDocument(Key(sharedCode, url), value); err != nil {
			return rules, err
		}
	}
	return rules, checkRead(r, KindRobots)
}

package batch

import (
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/varint"
	"kumo/internal/content/policy"
)

// Known is the state of a URL after the days so far. The next day uses it for the recrawl time and conditional
// requests.
type Known struct {
	Collection, URL string // the key

	Depth   int
	Seed    bool
	First   time.Time // time of the first fetch
	Visits  policy.Visits
	Status  int // last answer that concerned the page
	Changes int // visits that found a changed page

	Digest   page.Digest // of the last version
	ETag     string
	Modified time.Time // Last-Modified
	Stored   Stored    // of the last version
}

// Key returns the record's key.
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

// ReadKnown decodes a record.
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

// Stored identifies the Document that contains a URL's body while later visits find it unchanged. The zero value
// identifies none.
type Stored struct {
	Time time.Time // time of the Document
	// Chunked is the SHA-1 of its body with chunks; zero if it was not chunked.
	Chunked page.Digest
}

func (s *Stored) put(w *varint.Writer) {
	putTime(w, s.Time)
	putArray(w, s.Chunked)
}

func getStored(r *varint.Reader) Stored {
	return Stored{Time: getTime(r), Chunked: getArray[page.Digest](r)}
}

// sharedCode is the code of records that belong to no single collection.
const sharedCode = "-"

// A RobotsRecord is the robots.txt answer of an origin, used for the rest of the day. The key is the origin.
type RobotsRecord struct {
	Origin string // "https://example.com"

	Time   time.Time
	Status int    // 0: no answer
	Body   []byte // decoded
	// RedirectTo is the redirect target if its host belongs to another task. It is then requested in the next round,
	// which writes another record. "" if this is the final answer.
	RedirectTo string
	// Exchange contains the request and the answer, as a Document without collection. After a redirect, its URL is not
	// the origin's own. Without an answer, it has neither URL nor Raw.
	Exchange Document
}

// Key returns the record's key.
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

// ReadRobotsRecord decodes a record. Body and Exchange alias value.
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

package crawl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"kumo/internal/item"
	"kumo/internal/member"
	"kumo/internal/page"
	"kumo/internal/policy"
	"kumo/internal/seen"
	"kumo/internal/stats"
	"kumo/internal/store"
)

// A journal batch is a sequence of entries: a byte that says which, then its fields. Numbers are varints, strings have
// their length before them. New kinds of entry get new bytes; a byte that is not known stops a replay.
const (
	entryFound = 'f' // a URL entered the frontier
	entryDone  = 'd' // a URL was answered, or failed for good
	entrySkip  = 's' // a URL was left out for good
	entryAside = 'a' // a URL was set aside: a better link may bring it in
	entryLater = 'l' // a URL was met that may be known: the next merge of seen decides
	entryAsked = 'q' // how much of the file of set-aside URLs has been written down
	entryMark  = 'm' // a record file's length at this point
	entryOut   = 'x' // a URL was left out on its way in; a seed may still name it
	entryGone  = 'g' // a URL was left out that had waited; a seed may still name it
	entryTold  = 't' // a URL was said to have failed with its host; it still waits
	entryNear  = 'r' // a URL was met nearer to a seed
	entryOff   = 'o' // links to a host that is not the crawl's
	entrySums  = 'n' // counters that follow from no other entry
	entryAgain = 'w' // a URL was taken for a recrawl
	entryDue   = 'u' // when a URL is to be visited again
	entryTime  = 'C' // when what follows was put: what a batch with entries begins with
	entryBound = 'b' // a link is bound for another node
	entryTaken = 'k' // links that were bound for other nodes have come there
	entryList  = 'L' // how far a list of seeds was taken in

	entryCame    = 'h' // a chunk of a transfer of hosts to this node
	entryMerged  = 'H' // the same, of hosts some of which this node has
	entryDropped = 'y' // a transfer did not come whole, and is undone
	entryForgot  = 'z' // hosts have gone to other nodes
	entryWent    = 'Z' // transfers that are done with: they went whole, and their hosts are forgotten
	entryEpoch   = 'e' // which transfers came or went whole need not be known any more, up to an epoch

	entryOldTime = 'c' // what batches began with when items were written otherwise
)

type encoder struct{ b []byte }

func (e *encoder) kind(k byte) { e.b = append(e.b, k) }
func (e *encoder) int(n int64) { e.b = binary.AppendVarint(e.b, n) }
func (e *encoder) string(s string) {
	e.b = binary.AppendUvarint(e.b, uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

// flags writes up to eight bools, the first as the lowest bit.
func (e *encoder) flags(all ...bool) {
	var f byte
	for i, set := range all {
		if set {
			f |= 1 << i
		}
	}
	e.b = append(e.b, f)
}

var errShort = errors.New("an entry ends early")

// A decoder reads fields; after the first that is not there all are zero and err is set.
type decoder struct {
	b    []byte
	err  error
	text item.Reader // where it shares, all strings are parts of a few
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.err = errShort
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) bool() bool { return d.byte() != 0 }

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.b)
	return took(d, n, size)
}

func (d *decoder) string() string {
	n, size := binary.Uvarint(d.b)
	if n = took(d, n, size); d.err != nil || n > uint64(len(d.b)) {
		d.err = errShort
		return ""
	}
	s := d.text.String(d.b[:n])
	d.b = d.b[n:]
	return s
}

func took[T int64 | uint64](d *decoder, n T, size int) T {
	if size <= 0 {
		d.err, d.b = errShort, nil
		return 0
	}
	d.b = d.b[size:]
	return n
}

// item writes an item for who does not know its host.
func (e *encoder) item(it *item.Item) { e.b = item.Append(e.b, "", it) }

// item reads an item of a host, "" where it says so itself.
func (d *decoder) item(host string) (it item.Item) {
	if d.err == nil {
		it, d.b, d.err = d.text.Read(d.b, host)
	}
	return it
}

func (e *encoder) found(it *item.Item) {
	e.kind(entryFound)
	e.item(it)
}

// candidate is a URL that seen has yet to decide about, with its verdict.
func (e *encoder) candidate(c *candidate) {
	e.item(&c.item)
	e.string(c.Rule)
	e.string(c.Why)
	e.bool(c.Deferred)
}

func (d *decoder) candidate() candidate {
	it := d.item("")
	return candidate{host: it.Host(), item: it, Verdict: policy.Verdict{Rule: d.string(), Why: d.string(),
		Deferred: d.bool()}}
}

func (e *encoder) later(payload []byte) {
	e.kind(entryLater)
	e.string(string(payload))
}

func (e *encoder) asked(upTo int64) {
	e.kind(entryAsked)
	e.int(upTo)
}

// done is what the journal keeps of a visit: enough to count it and to refer to its record.
type done struct {
	url   string
	visit stats.Visit
	meta  seen.Meta // what the URL database keeps of it
	ref   page.Ref  // where the payload lies, if this record has it
}

func (e *encoder) done(v *done) {
	e.kind(entryDone)
	e.string(v.url)
	e.string(v.visit.Host)
	e.int(int64(v.visit.Status))
	e.string(v.visit.Failure)
	e.string(v.visit.Type)
	e.int(v.visit.Bytes)
	e.int(int64(v.visit.Took))
	e.flags(v.visit.Duplicate, v.visit.Recrawl)
	e.int(v.meta.Fetched.Unix())
	e.int(max(v.meta.Modified.Unix(), 0))
	e.string(v.meta.ETag)
	e.b = append(e.b, v.meta.Digest[:]...)
	e.string(v.ref.ID)
	if v.ref.ID != "" {
		e.int(v.ref.Time.UnixMicro())
		if chunked := v.ref.Chunked != [20]byte{}; chunked {
			e.string(string(v.ref.Chunked[:]))
		} else {
			e.string("")
		}
	}
}

func (d *decoder) done() (v done) {
	v.url = d.string()
	v.visit = stats.Visit{Host: d.string(), Status: int(d.int()), Failure: d.string(), Type: d.string(), Bytes: d.int(),
		Took: time.Duration(d.int())}
	flags := d.byte()
	v.visit.Duplicate, v.visit.Recrawl = flags&1 != 0, flags&2 != 0
	v.meta = seen.Meta{Status: v.visit.Status, Fetched: time.Unix(d.int(), 0).UTC()}
	if modified := d.int(); modified > 0 {
		v.meta.Modified = time.Unix(modified, 0).UTC()
	}
	v.meta.ETag = d.string()
	for i := range v.meta.Digest {
		v.meta.Digest[i] = d.byte()
	}
	if v.ref.ID = d.string(); v.ref.ID != "" {
		v.ref.URL, v.ref.Time = v.url, time.UnixMicro(d.int()).UTC()
		copy(v.ref.Chunked[:], d.string())
	}
	return v
}

func (e *encoder) skip(kind byte, s *page.Skip) {
	e.kind(kind)
	e.string(s.URL)
	e.string(s.Host)
	e.string(s.From)
	e.int(int64(s.Depth))
	e.string(s.Rule)
	e.string(s.Why)
}

func (d *decoder) skip() page.Skip {
	return page.Skip{URL: d.string(), Host: d.string(), From: d.string(), Depth: int(d.int()), Rule: d.string(),
		Why: d.string()}
}

func (e *encoder) mark(m store.Mark) {
	e.kind(entryMark)
	e.string(m.Name)
	e.int(m.Length)
}

func (d *decoder) mark() store.Mark { return store.Mark{Name: d.string(), Length: d.int()} }

func (e *encoder) told(url string) {
	e.kind(entryTold)
	e.string(url)
}

func (e *encoder) nearer(url string, depth int32) {
	e.kind(entryNear)
	e.string(url)
	e.int(int64(depth))
}

func (e *encoder) sums(s stats.Sums) {
	e.kind(entrySums)
	for _, n := range []int64{s.Retries, s.Robots, s.Links, s.ExtraBytes} {
		e.int(n)
	}
}

func (d *decoder) sums() stats.Sums {
	return stats.Sums{Retries: d.int(), Robots: d.int(), Links: d.int(), ExtraBytes: d.int()}
}

// again is found for a recrawl.
func (e *encoder) again(it *item.Item, queued time.Time) {
	e.kind(entryAgain)
	e.int(queued.Unix())
	e.item(it)
}

func (d *decoder) again() (queued time.Time, it item.Item) {
	return time.Unix(d.int(), 0).UTC(), d.item("")
}

func (e *encoder) due(url string, m *seen.Meta) {
	e.kind(entryDue)
	e.string(url)
	e.int(m.Due.Unix())
	e.int(int64(m.Every / time.Second))
	e.int(int64(m.Missing))
	e.int(int64(m.Kind))
}

func (d *decoder) due() (url string, m seen.Meta) {
	return d.string(), seen.Meta{Due: time.Unix(d.int(), 0).UTC(), Every: time.Duration(d.int()) * time.Second,
		Missing: int(d.int()), Kind: uint8(d.int())}
}

func (e *encoder) off(host string, n int64) {
	e.kind(entryOff)
	e.string(host)
	e.int(n)
}

func (e *encoder) time(t time.Time) {
	e.kind(entryTime)
	e.int(t.Unix())
}

func (e *encoder) bound(number uint64, link string) {
	e.kind(entryBound)
	e.int(int64(number))
	e.string(link)
}

func (e *encoder) taken(first, last uint64) {
	e.kind(entryTaken)
	e.int(int64(first))
	e.int(int64(last))
}

// A reader is told the entries of a batch.
type reader interface {
	time(t time.Time)
	found(it item.Item)
	later(payload string)
	asked(upTo int64)
	done(v done)
	skip(s page.Skip)
	out(s page.Skip)
	gone(s page.Skip)
	aside(s page.Skip)
	told(url string)
	nearer(url string, depth int32)
	sums(s stats.Sums)
	mark(m store.Mark)
	off(host string, n int64)
	again(queued time.Time, it item.Item)
	due(url string, m seen.Meta)
	bound(number uint64, link string)
	taken(first, last uint64)
	list(m ListMark)
	came(c came)
	dropped(t member.Transfer)
	forgot(hosts []string)
	went(whole []member.Transfer)
	epoch(settled uint64)
}

// read tells r the entries of a batch.
func read(batch []byte, r reader) error {
	d := decoder{b: batch}
	for len(d.b) > 0 && d.err == nil {
		switch k := d.byte(); k {
		case entryFound:
			r.found(d.item(""))
		case entryLater:
			r.later(d.string())
		case entryAsked:
			r.asked(d.int())
		case entryDone:
			r.done(d.done())
		case entrySkip:
			r.skip(d.skip())
		case entryOut:
			r.out(d.skip())
		case entryGone:
			r.gone(d.skip())
		case entryTold:
			r.told(d.string())
		case entryNear:
			r.nearer(d.string(), int32(d.int()))
		case entrySums:
			r.sums(d.sums())
		case entryAside:
			r.aside(d.skip())
		case entryMark:
			r.mark(d.mark())
		case entryAgain:
			r.again(d.again())
		case entryDue:
			r.due(d.due())
		case entryBound:
			r.bound(uint64(d.int()), d.string())
		case entryTaken:
			r.taken(uint64(d.int()), uint64(d.int()))
		case entryList:
			r.list(d.list())
		case entryCame:
			r.came(d.came())
		case entryMerged:
			r.came(d.merged())
		case entryDropped:
			r.dropped(d.transfer())
		case entryForgot:
			r.forgot(d.hosts())
		case entryWent:
			r.went(d.went())
		case entryEpoch:
			r.epoch(uint64(d.int()))
		case entryOff:
			r.off(d.string(), d.int())
		case entryTime:
			r.time(time.Unix(d.int(), 0))
		case entryOldTime:
			return fmt.Errorf("the journal: %w", ErrOlder)
		default:
			return fmt.Errorf("the journal has an entry of kind %q: a newer kumo wrote it", k)
		}
	}
	return d.err
}

// appendTime begins a batch of the journal.
func appendTime(batch []byte, now time.Time) []byte {
	enc := encoder{batch}
	enc.time(now)
	return enc.b
}

func appendMark(batch []byte, m store.Mark) []byte {
	enc := encoder{batch}
	enc.mark(m)
	return enc.b
}

// appendCounts journals what has been counted since the last commit and follows from no other entry.
func (e *Engine) appendCounts(batch []byte) []byte {
	enc := encoder{batch}
	e.offHosts.journal(&enc, e.stats)
	return enc.b
}

// Package entry defines the entries of a node's journal and their encoding.
//
// A batch of the journal is a sequence of entries. An entry is a byte for its kind, followed by its fields. Numbers are
// varints, and strings are preceded by their length. A new kind of entry gets a new byte; an unknown byte stops a
// replay.
package entry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/varint"
	"kumo/internal/cluster/member"
	"kumo/internal/content/cookies"
	"kumo/internal/state/seen"
	"kumo/internal/state/store"
)

// The kinds of entries. The writer chooses among the Skip kinds of excluded URLs.
const (
	kindFound        = 'f' // a URL entered the frontier
	kindDone         = 'd' // a URL was answered, or failed for good
	SkipKnown        = 's' // a URL was excluded permanently
	SkipDeferred     = 'a' // a URL was deferred: a better link may admit it
	kindUndecided    = 'l' // a URL that may be known was found; the next merge of seen decides
	kindDeferredRead = 'q' // how much of the file of deferred URLs was written to skipped.jsonl
	kindMark         = 'm' // a record file's length at this point
	SkipNew          = 'x' // a URL was excluded on admission; a seed may still name it
	SkipPending      = 'g' // a pending URL was excluded; a seed may still name it
	kindReported     = 't' // a URL was reported as failed with its host; it is still pending
	kindNearer       = 'r' // a known URL was found at a lower depth
	kindOffHost      = 'o' // links to a host outside the crawl
	kindCounters     = 'n' // counters that no other entry contains
	kindRecrawl      = 'w' // a URL was queued for a recrawl
	kindDue          = 'u' // when a URL is due for another visit
	kindFrom         = 'F' // which page named a URL that is due for another visit
	kindTime         = 'C' // time of the following entries; the first entry of each batch
	kindOutgoing     = 'b' // a link was queued for another node
	kindDelivered    = 'k' // links for other nodes were delivered
	kindSeedList     = 'L' // how much of a seed list was read
	kindDispatched   = 'A' // a URL entered the frontier; its host had been released before
	kindEnded        = 'E' // a URL is finished without a Done: its visit got no response, or there will be none
	kindReleased     = 'R' // hosts were released, and all data about them dropped
	kindCookie       = 'J' // a server set or deleted a cookie

	kindChunk           = 'h' // a chunk of a transfer of hosts to this node
	kindMergedChunk     = 'H' // the same, with hosts that this node already held
	kindTransferDropped = 'y' // an incomplete transfer was undone
	kindHostsForgotten  = 'z' // hosts were transferred to other nodes
	kindTransfersDone   = 'Z' // transfers that are complete, and whose hosts were forgotten
	kindEpochSettled    = 'e' // transfers up to an epoch are settled, and their records dropped

	kindOldTime = 'c' // first entry of a batch in an older format of items
)

// An Encoder appends encoded entries.
type Encoder struct{ varint.Writer }

// Item writes an item with its host, for readers that do not know the host.
func (e *Encoder) Item(it *item.Item) { e.Writer = item.Append(e.Writer, "", it) }

// ErrShort reports a truncated entry.
var ErrShort = errors.New("truncated entry")

// A Decoder reads fields. After an error all further fields are zero.
type Decoder struct {
	varint.Reader
	Text    item.Reader // decodes strings; may share memory between them
	itemErr error       // error of an item
}

// NewDecoder returns a decoder of b, which must not change meanwhile.
func NewDecoder(b []byte) *Decoder { return &Decoder{Reader: varint.Reader{Rest: b}} }

// Err returns the error if not all fields could be read.
func (d *Decoder) Err() error {
	if d.Bad && d.itemErr == nil {
		return ErrShort
	}
	return d.itemErr
}

// String reads a string in the same way as those of items.
func (d *Decoder) String() string { return d.Text.String(d.Bytes()) }

// Item reads an item of a host. The host is "" if the item contains it.
func (d *Decoder) Item(host string) (it item.Item) {
	if d.Bad {
		return it
	}
	it, d.Rest, d.itemErr = d.Text.Read(d.Rest, host)
	d.Bad = d.itemErr != nil
	return it
}

// Found writes a URL that entered the frontier.
func (e *Encoder) Found(it *item.Item) {
	e.Byte(kindFound)
	e.Item(it)
}

// Undecided writes a candidate, encoded by Candidate. The next merge of the URL database decides whether its URL is
// new.
func (e *Encoder) Undecided(payload []byte) {
	e.Byte(kindUndecided)
	e.String(string(payload))
}

// DeferredRead writes how many bytes of the file of deferred URLs were reported in skipped.jsonl.
func (e *Encoder) DeferredRead(upTo int64) {
	e.Byte(kindDeferredRead)
	e.Int(upTo)
}

// Done is the journal's data of a visit: enough to count it and to refer to its record.
type Done struct {
	URL   string
	Visit stats.Visit
	Meta  seen.Meta // for the URL database
	Ref   page.Ref  // location of the payload, if this record has it
}

// Done writes the end of a visit.
func (e *Encoder) Done(v *Done) {
	e.Byte(kindDone)
	e.String(v.URL)
	e.String(v.Visit.Host)
	e.Int(int64(v.Visit.Status))
	e.String(v.Visit.Failure)
	e.String(v.Visit.Type)
	e.Int(v.Visit.Bytes)
	e.Int(int64(v.Visit.Took))
	e.Flags(v.Visit.Duplicate, v.Visit.Recrawl, v.Visit.Status == http.StatusNotModified && v.Meta.Status == http.StatusOK,
		v.Visit.LinksCut, v.Meta.Content != 0, v.Visit.NeedsScript, v.Visit.Rendered, v.Visit.Usage != "")
	e.Int(v.Meta.Fetched.Unix())
	e.Int(max(v.Meta.Modified.Unix(), 0))
	e.String(v.Meta.ETag)
	e.Writer = append(e.Writer, v.Meta.Digest[:]...)
	e.String(v.Ref.ID)
	if v.Ref.ID != "" {
		e.Int(v.Ref.Time.UnixMicro())
		if chunked := v.Ref.Chunked != [20]byte{}; chunked {
			e.String(string(v.Ref.Chunked[:]))
		} else {
			e.String("")
		}
	}
	if v.Meta.Content != 0 {
		e.Writer = binary.LittleEndian.AppendUint64(e.Writer, v.Meta.Content)
	}
	if v.Visit.Usage != "" {
		e.String(v.Visit.Usage)
	}
}

func (d *Decoder) done() (v Done) {
	v.URL = d.String()
	v.Visit = stats.Visit{Host: d.String(), Status: int(d.Int()), Failure: d.String(), Type: d.String(), Bytes: d.Int(),
		Took: time.Duration(d.Int())}
	flags := d.Byte()
	v.Visit.Duplicate, v.Visit.Recrawl, v.Visit.LinksCut = flags&1 != 0, flags&2 != 0, flags&8 != 0
	v.Visit.NeedsScript, v.Visit.Rendered = flags&32 != 0, flags&64 != 0
	v.Meta = seen.Meta{Status: v.Visit.Status, Fetched: time.Unix(d.Int(), 0).UTC()}
	if flags&4 != 0 { // the response confirms the known content
		v.Meta.Status = http.StatusOK
	}
	if modified := d.Int(); modified > 0 {
		v.Meta.Modified = time.Unix(modified, 0).UTC()
	}
	v.Meta.ETag = d.String()
	for i := range v.Meta.Digest {
		v.Meta.Digest[i] = d.Byte()
	}
	if v.Ref.ID = d.String(); v.Ref.ID != "" {
		v.Ref.URL, v.Ref.Time = v.URL, time.UnixMicro(d.Int()).UTC()
		copy(v.Ref.Chunked[:], d.String())
	}
	if flags&16 != 0 {
		for i := range 8 {
			v.Meta.Content |= uint64(d.Byte()) << (8 * i)
		}
	}
	if flags&128 != 0 {
		v.Visit.Usage = d.String()
	}
	return v
}

// Skip writes an excluded URL. kind is one of the Skip constants.
func (e *Encoder) Skip(kind byte, s *page.Skip) {
	e.Byte(kind)
	e.String(s.URL)
	e.String(s.Host)
	e.String(s.From)
	e.Int(int64(s.Depth))
	e.String(s.Rule)
	e.String(s.Why)
}

// Skip reads the fields written by Encoder.Skip, after the kind.
func (d *Decoder) Skip() page.Skip {
	return page.Skip{URL: d.String(), Host: d.String(), From: d.String(), Depth: int(d.Int()), Rule: d.String(),
		Why: d.String()}
}

// Mark writes the length of a record file.
func (e *Encoder) Mark(m store.Mark) {
	e.Byte(kindMark)
	e.String(m.Name)
	e.Int(m.Length)
}

func (d *Decoder) mark() store.Mark { return store.Mark{Name: d.String(), Length: d.Int()} }

// Reported writes a URL that skipped.jsonl reports as failed with its host. It is still pending.
func (e *Encoder) Reported(url string) {
	e.Byte(kindReported)
	e.String(url)
}

// Nearer writes a known URL that was found at a lower depth.
func (e *Encoder) Nearer(url string, depth int32) {
	e.Byte(kindNearer)
	e.String(url)
	e.Int(int64(depth))
}

// Counters writes counters that no other entry contains.
func (e *Encoder) Counters(s stats.Sums) {
	e.Byte(kindCounters)
	for _, n := range []int64{s.Retries, s.Robots, s.Links, s.ExtraBytes} {
		e.Int(n)
	}
}

func (d *Decoder) sums() stats.Sums {
	return stats.Sums{Retries: d.Int(), Robots: d.Int(), Links: d.Int(), ExtraBytes: d.Int()}
}

// Recrawl writes a URL that entered the frontier for a recrawl.
func (e *Encoder) Recrawl(it *item.Item, queued time.Time) {
	e.Byte(kindRecrawl)
	e.Int(queued.Unix())
	e.Item(it)
}

func (d *Decoder) recrawl() (queued time.Time, it item.Item) {
	return time.Unix(d.Int(), 0).UTC(), d.Item("")
}

// Due writes when a URL is due for another visit.
func (e *Encoder) Due(url string, m *seen.Meta) {
	e.Byte(kindDue)
	e.String(url)
	e.Int(m.Due.Unix())
	e.Int(int64(m.Every / time.Second))
	e.Int(int64(m.Missing))
	e.Int(int64(m.Kind))
}

func (d *Decoder) due() (url string, m seen.Meta) {
	return d.String(), seen.Meta{Due: time.Unix(d.Int(), 0).UTC(), Every: time.Duration(d.Int()) * time.Second,
		Missing: int(d.Int()), Kind: uint8(d.Int())}
}

// From writes the page that named a URL that is due for another visit. A Reader receives it as Due.
func (e *Encoder) From(url, from string) {
	e.Byte(kindFrom)
	e.String(url)
	e.String(from)
}

// OffHost writes a number of links to a host outside the crawl.
func (e *Encoder) OffHost(host string, n int64) {
	e.Byte(kindOffHost)
	e.String(host)
	e.Int(n)
}

// Time writes the time of the following entries.
func (e *Encoder) Time(t time.Time) {
	e.Byte(kindTime)
	e.Int(t.Unix())
}

// Outgoing writes a link for another node: a candidate, encoded by Candidate, and its number in the outbox.
func (e *Encoder) Outgoing(number uint64, link string) {
	e.Byte(kindOutgoing)
	e.Int(int64(number))
	e.String(link)
}

// Delivered writes the outbox numbers of links that other nodes have received.
func (e *Encoder) Delivered(first, last uint64) {
	e.Byte(kindDelivered)
	e.Int(int64(first))
	e.Int(int64(last))
}

// Dispatched is Found for a URL whose host has been released tenure times before.
func (e *Encoder) Dispatched(it *item.Item, tenure int) {
	e.Byte(kindDispatched)
	e.Int(int64(tenure))
	e.Item(it)
}

func (d *Decoder) dispatched() (tenure int, it item.Item) { return int(d.Int()), d.Item("") }

// Ended writes a URL that will not be fetched any more and has no Done.
func (e *Encoder) Ended(url string) {
	e.Byte(kindEnded)
	e.String(url)
}

// HostsReleased writes hosts that were released: their pending URLs are unknown from now on.
func (e *Encoder) HostsReleased(hosts []string) {
	e.Byte(kindReleased)
	e.hosts(hosts)
}

// Cookie writes a cookie that a server set. An expired cookie is deleted.
func (e *Encoder) Cookie(c *cookies.Cookie) {
	e.Byte(kindCookie)
	e.Bytes(cookies.Append(nil, c))
}

func (d *Decoder) cookie() cookies.Cookie {
	c, rest, ok := cookies.Read(d.Bytes())
	d.Bad = d.Bad || !ok || len(rest) > 0
	return c
}

// A Reader receives the entries of a batch.
type Reader interface {
	Time(t time.Time)
	Found(it item.Item)
	Undecided(payload string)
	DeferredRead(upTo int64)
	Done(v Done)
	Skip(s page.Skip)
	SkippedNew(s page.Skip)
	SkippedPending(s page.Skip)
	Deferred(s page.Skip)
	Reported(url string)
	Nearer(url string, depth int32)
	Counters(s stats.Sums)
	Mark(m store.Mark)
	OffHost(host string, n int64)
	Recrawl(queued time.Time, it item.Item)
	Due(url string, m seen.Meta)
	Outgoing(number uint64, link string)
	Delivered(first, last uint64)
	SeedList(m SeedListMark)
	Chunk(c Chunk)
	TransferDropped(t member.Transfer)
	HostsForgotten(hosts []string)
	TransfersDone(whole []member.Transfer)
	EpochSettled(settled uint64)
	Dispatched(tenure int, it item.Item)
	Ended(url string)
	HostsReleased(hosts []string)
	Cookie(c cookies.Cookie)
}

// NopReader returns a Reader that ignores all entries. Embed it to handle only some.
func NopReader() Reader { return nopReader{} }

type nopReader struct{}

func (nopReader) Time(time.Time)                  {}
func (nopReader) Found(item.Item)                 {}
func (nopReader) Undecided(string)                {}
func (nopReader) DeferredRead(int64)              {}
func (nopReader) Done(Done)                       {}
func (nopReader) Skip(page.Skip)                  {}
func (nopReader) SkippedNew(page.Skip)            {}
func (nopReader) SkippedPending(page.Skip)        {}
func (nopReader) Deferred(page.Skip)              {}
func (nopReader) Reported(string)                 {}
func (nopReader) Nearer(string, int32)            {}
func (nopReader) Counters(stats.Sums)             {}
func (nopReader) Mark(store.Mark)                 {}
func (nopReader) OffHost(string, int64)           {}
func (nopReader) Recrawl(time.Time, item.Item)    {}
func (nopReader) Due(string, seen.Meta)           {}
func (nopReader) Outgoing(uint64, string)         {}
func (nopReader) Delivered(uint64, uint64)        {}
func (nopReader) SeedList(SeedListMark)           {}
func (nopReader) Chunk(Chunk)                     {}
func (nopReader) TransferDropped(member.Transfer) {}
func (nopReader) HostsForgotten([]string)         {}
func (nopReader) TransfersDone([]member.Transfer) {}
func (nopReader) EpochSettled(uint64)             {}
func (nopReader) Dispatched(int, item.Item)       {}
func (nopReader) Ended(string)                    {}
func (nopReader) HostsReleased([]string)          {}
func (nopReader) Cookie(cookies.Cookie)           {}

// Read calls r with the entries of a batch.
func Read(batch []byte, r Reader) error {
	d := NewDecoder(batch)
	for len(d.Rest) > 0 && !d.Bad {
		switch k := d.Byte(); k {
		case kindFound:
			r.Found(d.Item(""))
		case kindUndecided:
			r.Undecided(d.String())
		case kindDeferredRead:
			r.DeferredRead(d.Int())
		case kindDone:
			r.Done(d.done())
		case SkipKnown:
			r.Skip(d.Skip())
		case SkipNew:
			r.SkippedNew(d.Skip())
		case SkipPending:
			r.SkippedPending(d.Skip())
		case kindReported:
			r.Reported(d.String())
		case kindNearer:
			r.Nearer(d.String(), int32(d.Int()))
		case kindCounters:
			r.Counters(d.sums())
		case SkipDeferred:
			r.Deferred(d.Skip())
		case kindMark:
			r.Mark(d.mark())
		case kindRecrawl:
			r.Recrawl(d.recrawl())
		case kindDue:
			r.Due(d.due())
		case kindFrom:
			r.Due(d.String(), seen.Meta{From: d.String()})
		case kindOutgoing:
			r.Outgoing(uint64(d.Int()), d.String())
		case kindDelivered:
			r.Delivered(uint64(d.Int()), uint64(d.Int()))
		case kindSeedList:
			r.SeedList(d.seedList())
		case kindChunk:
			r.Chunk(d.chunk())
		case kindMergedChunk:
			r.Chunk(d.mergedChunk())
		case kindTransferDropped:
			r.TransferDropped(d.transfer())
		case kindHostsForgotten:
			r.HostsForgotten(d.hosts())
		case kindTransfersDone:
			r.TransfersDone(d.transfers())
		case kindEpochSettled:
			r.EpochSettled(uint64(d.Int()))
		case kindDispatched:
			r.Dispatched(d.dispatched())
		case kindEnded:
			r.Ended(d.String())
		case kindReleased:
			r.HostsReleased(d.hosts())
		case kindCookie:
			if c := d.cookie(); !d.Bad {
				r.Cookie(c)
			}
		case kindOffHost:
			r.OffHost(d.String(), d.Int())
		case kindTime:
			r.Time(time.Unix(d.Int(), 0))
		case kindOldTime:
			return fmt.Errorf("read the journal: %w", ErrOlder)
		default:
			return fmt.Errorf("read the journal: unknown entry kind %q: it was written by a newer kumo", k)
		}
	}
	return d.Err()
}

// AppendTime appends a Time to a batch. It must be the first entry.
func AppendTime(batch []byte, now time.Time) []byte {
	enc := Encoder{Writer: batch}
	enc.Time(now)
	return enc.Writer
}

// AppendMark appends a Mark to a batch.
func AppendMark(batch []byte, m store.Mark) []byte {
	enc := Encoder{Writer: batch}
	enc.Mark(m)
	return enc.Writer
}

// ErrOlder reports a state of an older version of kumo that this version cannot read.
var ErrOlder = errors.New("an older kumo wrote this crawl's state, and this version cannot resume it: start over " +
	"with --fresh, or in another folder")

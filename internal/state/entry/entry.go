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

// The kinds of entries. Those of URLs that are left out are named by who writes them.
const (
	kindFound        = 'f' // a URL entered the frontier
	kindDone         = 'd' // a URL was answered, or failed for good
	SkipKnown        = 's' // a URL was left out for good
	SkipDeferred     = 'a' // a URL was set aside: a better link may bring it in
	kindUndecided    = 'l' // a URL was met that may be known: the next merge of seen decides
	kindDeferredRead = 'q' // how much of the file of set-aside URLs has been written down
	kindMark         = 'm' // a record file's length at this point
	SkipNew          = 'x' // a URL was left out on its way in; a seed may still name it
	SkipPending      = 'g' // a URL was left out that had waited; a seed may still name it
	kindReported     = 't' // a URL was said to have failed with its host; it still waits
	kindNearer       = 'r' // a URL was met nearer to a seed
	kindOffHost      = 'o' // links to a host that is not the crawl's
	kindCounters     = 'n' // counters that follow from no other entry
	kindRecrawl      = 'w' // a URL was taken for a recrawl
	kindDue          = 'u' // when a URL is to be visited again
	kindFrom         = 'F' // which page named a URL that is to be visited again
	kindTime         = 'C' // when what follows was put: what a batch with entries begins with
	kindOutgoing     = 'b' // a link is bound for another node
	kindDelivered    = 'k' // links that were bound for other nodes have come there
	kindSeedList     = 'L' // how far a list of seeds was taken in
	kindDispatched   = 'A' // a URL entered the frontier, of a host that had been given away before
	kindEnded        = 'E' // a URL's visit ended without an answer, or it will have none: nothing of it waits
	kindReleased     = 'R' // hosts were given away, with nothing that is known of them
	kindCookie       = 'J' // a server has set a cookie, or deleted it

	kindChunk           = 'h' // a chunk of a transfer of hosts to this node
	kindMergedChunk     = 'H' // the same, of hosts some of which this node has
	kindTransferDropped = 'y' // a transfer did not come whole, and is undone
	kindHostsForgotten  = 'z' // hosts have gone to other nodes
	kindTransfersDone   = 'Z' // transfers that are done with: they went whole, and their hosts are forgotten
	kindEpochSettled    = 'e' // which transfers came or went whole need not be known any more, up to an epoch

	kindOldTime = 'c' // what batches began with when items were written otherwise
)

// An Encoder writes entries, one behind the other.
type Encoder struct{ varint.Writer }

// Item writes an item for who does not know its host.
func (e *Encoder) Item(it *item.Item) { e.Writer = item.Append(e.Writer, "", it) }

// ErrShort is an entry that ends early.
var ErrShort = errors.New("an entry ends early")

// A Decoder reads fields; after the first that is not there all are zero.
type Decoder struct {
	varint.Reader
	Text    item.Reader // where it shares, all strings are parts of a few
	itemErr error       // an item could not be read
}

// NewDecoder reads what is in b, which does not change meanwhile.
func NewDecoder(b []byte) *Decoder { return &Decoder{Reader: varint.Reader{Rest: b}} }

// Err is why not all fields could be read, nil if they were.
func (d *Decoder) Err() error {
	if d.Bad && d.itemErr == nil {
		return ErrShort
	}
	return d.itemErr
}

// String reads a string as those of items are.
func (d *Decoder) String() string { return d.Text.String(d.Bytes()) }

// Item reads an item of a host, "" where it says so itself.
func (d *Decoder) Item(host string) (it item.Item) {
	if d.Bad {
		return it
	}
	it, d.Rest, d.itemErr = d.Text.Read(d.Rest, host)
	d.Bad = d.itemErr != nil
	return it
}

// Found is a URL that entered the frontier.
func (e *Encoder) Found(it *item.Item) {
	e.Byte(kindFound)
	e.Item(it)
}

// Undecided is a candidate, as Candidate writes it, of which the next merge of the URL database says whether it is
// news.
func (e *Encoder) Undecided(payload []byte) {
	e.Byte(kindUndecided)
	e.String(string(payload))
}

// DeferredRead is how much of the file of deferred URLs has been told of in skipped.jsonl, in bytes.
func (e *Encoder) DeferredRead(upTo int64) {
	e.Byte(kindDeferredRead)
	e.Int(upTo)
}

// Done is what the journal keeps of a visit: enough to count it and to refer to its record.
type Done struct {
	URL   string
	Visit stats.Visit
	Meta  seen.Meta // what the URL database keeps of it
	Ref   page.Ref  // where the payload lies, if this record has it
}

// Done is the end of a visit.
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
		v.Visit.LinksCut, v.Meta.Content != 0)
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
}

func (d *Decoder) done() (v Done) {
	v.URL = d.String()
	v.Visit = stats.Visit{Host: d.String(), Status: int(d.Int()), Failure: d.String(), Type: d.String(), Bytes: d.Int(),
		Took: time.Duration(d.Int())}
	flags := d.Byte()
	v.Visit.Duplicate, v.Visit.Recrawl, v.Visit.LinksCut = flags&1 != 0, flags&2 != 0, flags&8 != 0
	v.Meta = seen.Meta{Status: v.Visit.Status, Fetched: time.Unix(d.Int(), 0).UTC()}
	if flags&4 != 0 { // the answer says that what is known holds
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
	return v
}

// Skip is a URL that is left out: kind is one of the Skip constants.
func (e *Encoder) Skip(kind byte, s *page.Skip) {
	e.Byte(kind)
	e.String(s.URL)
	e.String(s.Host)
	e.String(s.From)
	e.Int(int64(s.Depth))
	e.String(s.Rule)
	e.String(s.Why)
}

// Skip reads what Encoder.Skip wrote behind its kind.
func (d *Decoder) Skip() page.Skip {
	return page.Skip{URL: d.String(), Host: d.String(), From: d.String(), Depth: int(d.Int()), Rule: d.String(),
		Why: d.String()}
}

// Mark is a record file's length.
func (e *Encoder) Mark(m store.Mark) {
	e.Byte(kindMark)
	e.String(m.Name)
	e.Int(m.Length)
}

func (d *Decoder) mark() store.Mark { return store.Mark{Name: d.String(), Length: d.Int()} }

// Reported is a URL of which skipped.jsonl has said that it failed with its host; it waits still.
func (e *Encoder) Reported(url string) {
	e.Byte(kindReported)
	e.String(url)
}

// Nearer is a known URL that was met nearer to a seed.
func (e *Encoder) Nearer(url string, depth int32) {
	e.Byte(kindNearer)
	e.String(url)
	e.Int(int64(depth))
}

// Counters are those that follow from no other entry.
func (e *Encoder) Counters(s stats.Sums) {
	e.Byte(kindCounters)
	for _, n := range []int64{s.Retries, s.Robots, s.Links, s.ExtraBytes} {
		e.Int(n)
	}
}

func (d *Decoder) sums() stats.Sums {
	return stats.Sums{Retries: d.Int(), Robots: d.Int(), Links: d.Int(), ExtraBytes: d.Int()}
}

// Recrawl is found for a recrawl.
func (e *Encoder) Recrawl(it *item.Item, queued time.Time) {
	e.Byte(kindRecrawl)
	e.Int(queued.Unix())
	e.Item(it)
}

func (d *Decoder) recrawl() (queued time.Time, it item.Item) {
	return time.Unix(d.Int(), 0).UTC(), d.Item("")
}

// Due is when a URL is to be visited again.
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

// From is the page that named a URL which is to be visited again. A Reader is told it by Due.
func (e *Encoder) From(url, from string) {
	e.Byte(kindFrom)
	e.String(url)
	e.String(from)
}

// OffHost counts links to a host that is not the crawl's.
func (e *Encoder) OffHost(host string, n int64) {
	e.Byte(kindOffHost)
	e.String(host)
	e.Int(n)
}

// Time is when the entries behind it were put.
func (e *Encoder) Time(t time.Time) {
	e.Byte(kindTime)
	e.Int(t.Unix())
}

// Outgoing is a link for another node, a candidate as Candidate writes it, and its number in the outbox.
func (e *Encoder) Outgoing(number uint64, link string) {
	e.Byte(kindOutgoing)
	e.Int(int64(number))
	e.String(link)
}

// Delivered are links by their numbers in the outbox that other nodes have taken.
func (e *Encoder) Delivered(first, last uint64) {
	e.Byte(kindDelivered)
	e.Int(int64(first))
	e.Int(int64(last))
}

// Dispatched is found for a URL whose host had been given away so often before.
func (e *Encoder) Dispatched(it *item.Item, tenure int) {
	e.Byte(kindDispatched)
	e.Int(int64(tenure))
	e.Item(it)
}

func (d *Decoder) dispatched() (tenure int, it item.Item) { return int(d.Int()), d.Item("") }

// Ended is a URL that is not fetched any more, and of which no Done tells.
func (e *Encoder) Ended(url string) {
	e.Byte(kindEnded)
	e.String(url)
}

// HostsReleased are hosts that were given away: what waited there is unknown from then on.
func (e *Encoder) HostsReleased(hosts []string) {
	e.Byte(kindReleased)
	e.hosts(hosts)
}

// Cookie is a cookie that a server has set; one that has expired is deleted.
func (e *Encoder) Cookie(c *cookies.Cookie) {
	e.Byte(kindCookie)
	e.Bytes(cookies.Append(nil, c))
}

func (d *Decoder) cookie() cookies.Cookie {
	c, rest, ok := cookies.Read(d.Bytes())
	d.Bad = d.Bad || !ok || len(rest) > 0
	return c
}

// A Reader is told the entries of a batch.
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

// NopReader is a reader that ignores all, for those who want to be told of some.
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

// Read tells r the entries of a batch.
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
			return fmt.Errorf("the journal: %w", ErrOlder)
		default:
			return fmt.Errorf("the journal has an entry of kind %q: a newer kumo wrote it", k)
		}
	}
	return d.Err()
}

// AppendTime begins a batch of the journal.
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

// ErrOlder is a state that an older version of kumo wrote, which this one cannot go on from.
var ErrOlder = errors.New("an older kumo wrote this crawl's state, and this one cannot go on from it: begin again " +
	"with --fresh, or in another folder")

package crawl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"kumo/internal/item"
	"kumo/internal/seen"
)

// A chunk is a piece of what one node hands over to another: a byte for the version, then sheets, each of which stands
// for itself: its length, and as much compressed by zstd. A sheet begins with a Unix time that others are counted from;
// then come groups: the waiting URLs of a host in their order, as package item writes them, or the known URLs of an
// origin in theirs, each written by what it does not share with the one before.
const (
	chunkVersion = 2
	chunkBytes   = 256 << 10 // that a chunk has at most, unless one URL alone is to blame
	sheetBytes   = 64 << 10  // from which a sheet ends, before it is compressed
	chunkWeight  = 8 << 20   // of what a chunk may unfold to; about twice as much is still read
	maxSheet     = 1 << 20   // bytes: more is refused
	maxURL       = 1<<16 - 1 // bytes of a URL, and of what goes along with it
	maxHost      = 512       // bytes of a host's name with its port
	itemWeight   = 300       // bytes in memory of a URL, besides its strings
)

// The kinds of groups.
const (
	groupWaiting = 'w' // a host, its times, and URLs that wait there
	groupKnown   = 'k' // an origin, its host's times, and URLs that are known
)

var errChunk = errors.New("this is no chunk that this version of kumo understands")

// A hostTiming is what a host owes: the delay it asks for, and how long it is to be left alone yet.
type hostTiming struct{ asked, wait time.Duration }

// originOfURL is all that is before a URL's path; nothing if that is not to be found.
func originOfURL[T string | []byte](url T) T {
	for i, slashes := 0, 0; i < len(url); i++ {
		if url[i] == '/' {
			if slashes++; slashes == 3 {
				return url[:i]
			}
		}
	}
	return url[:0]
}

// sizes are of a sheet before it is compressed, and of a chunk.
type sizes struct{ sheetMost, chunkMost int }

// A chunkWriter writes chunks.
type chunkWriter struct {
	sizes
	zip    *zstd.Encoder
	now    time.Time
	out    []byte  // sheets that are done
	sheet  encoder // the one at hand
	weight int     // of all

	group  []byte // its beginning: kind and name
	host   string // of waiting URLs
	count  int    // its URLs
	urls   encoder
	before string // the last known URL, by what is behind its origin
}

// size is about how much the chunk will have at the most.
func (p *chunkWriter) size() int { return len(p.out) + len(p.sheet.b) + len(p.urls.b) + 1024 }

func (p *chunkWriter) empty() bool { return p.weight == 0 }

// waiting begins a group of waiting URLs.
func (p *chunkWriter) waiting(host string, c hostTiming) {
	p.begin(groupWaiting, host, c)
	p.host = host
}

// known begins a group of known URLs.
func (p *chunkWriter) known(origin string, c hostTiming) {
	p.begin(groupKnown, origin, c)
	p.before = "/"
}

func (p *chunkWriter) begin(kind byte, name string, c hostTiming) {
	p.endGroup()
	enc := encoder{p.group[:0]}
	enc.kind(kind)
	enc.string(name)
	enc.int(int64(c.asked / time.Millisecond))
	enc.int(int64((max(c.wait, 0) + time.Millisecond - 1) / time.Millisecond))
	p.group = enc.b
	p.weight += itemWeight + len(name)
}

// item adds a URL that waits.
func (p *chunkWriter) item(it *item.Item) {
	p.urls.b = item.Append(p.urls.b, p.host, it)
	p.count++
	p.weight += itemWeight + len(it.URL) + len(it.From) + len(it.Seed) + len(it.Path)
}

// entry adds a URL that is known, by what is behind its origin.
func (p *chunkWriter) entry(rest string, v *seen.Entry) {
	e := &p.urls
	e.b = append(e.b, byte(v.State))
	e.int(int64(v.Depth))
	e.int((p.now.Unix() - v.First.Unix()) / 60)
	e.rest(rest, p.before)
	e.b = seen.AppendMeta(e.b, &v.Meta, p.now.Unix())
	p.before = rest
	p.count++
	p.weight += itemWeight + len(v.URL) + len(v.ETag)
}

// full reports whether the sheet is to end, because of what it has or unfolds to; a group may go on in the next.
func (p *chunkWriter) full() bool {
	return len(p.sheet.b)+len(p.urls.b) >= p.sheetMost || p.weight >= chunkWeight
}

func (p *chunkWriter) endGroup() {
	if len(p.group) == 0 {
		return
	}
	if len(p.sheet.b) == 0 {
		p.sheet.int(p.now.Unix())
	}
	p.sheet.b = append(p.sheet.b, p.group...)
	p.sheet.int(int64(p.count))
	p.sheet.b = append(p.sheet.b, p.urls.b...)
	p.group, p.count, p.urls.b = p.group[:0], 0, p.urls.b[:0]
}

// endSheet compresses the sheet, and reports whether the chunk is to be sent: another sheet might be too much.
func (p *chunkWriter) endSheet() bool {
	p.endGroup()
	if len(p.sheet.b) == 0 {
		return false
	}
	if len(p.out) == 0 {
		p.out = append(p.out, chunkVersion)
	}
	zipped := p.zip.EncodeAll(p.sheet.b, make([]byte, 0, len(p.sheet.b)/2))
	p.out = append(binary.AppendUvarint(p.out, uint64(len(zipped))), zipped...)
	p.sheet.b = p.sheet.b[:0]
	return len(p.out)+p.sheetMost+1024 > p.chunkMost || p.weight >= chunkWeight
}

// chunk returns what was packed, and begins anew.
func (p *chunkWriter) chunk() []byte {
	p.endSheet()
	data := p.out
	p.out, p.weight = nil, 0
	return data
}

// rest writes s by what it does not share with the beginning of before.
func (e *encoder) rest(s, before string) {
	n := 0
	for n < len(s) && n < len(before) && s[n] == before[n] {
		n++
	}
	e.b = binary.AppendUvarint(e.b, uint64(n))
	e.string(s[n:])
}

// rest reads what encoder.rest wrote.
func (d *decoder) rest(before string) string {
	n, size := binary.Uvarint(d.b)
	n = took(d, n, size)
	more := d.string()
	if d.err != nil || n > uint64(len(before)) || int(n)+len(more) > maxURL {
		d.err = errChunk
		return ""
	}
	if more == "" {
		return before[:n]
	}
	return before[:n] + more
}

// A decodedChunk is a chunk unpacked.
type decodedChunk struct {
	waiting []arrived
	known   []learnt
	weight  int
}

// arrived are URLs that wait at a host.
type arrived struct {
	host  string
	clock hostTiming
	items []item.Item
}

// learnt are known URLs of an origin.
type learnt struct {
	host    string
	clock   hostTiming
	entries []seen.Entry
}

// An unpacker reads chunks. They come from the network: whatever they are, it takes a bounded part of memory, and they
// are read wholly or not at all.
type unpacker struct {
	zip   *zstd.Decoder
	sheet []byte
}

func newZip() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(128<<10))
}

func newUnpacker() (*unpacker, error) {
	zip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxSheet))
	return &unpacker{zip: zip}, err
}

// read reads a chunk. One without anything is a chunk, too.
func (u *unpacker) read(data []byte) (*decodedChunk, error) {
	p := &decodedChunk{}
	if len(data) == 0 {
		return p, nil
	}
	if data[0] != chunkVersion {
		return nil, errChunk
	}
	for data = data[1:]; len(data) > 0; {
		n, size := binary.Uvarint(data)
		if size <= 0 || n > uint64(len(data)-size) {
			return nil, errChunk
		}
		var err error
		if u.sheet, err = u.zip.DecodeAll(data[size:size+int(n)], u.sheet[:0]); err != nil {
			return nil, fmt.Errorf("%w: %w", errChunk, err)
		}
		d := decoder{b: u.sheet}
		d.text.Share = sheetBytes
		if d.sheet(p); d.err != nil {
			return nil, errChunk
		}
		data = data[size+int(n):]
	}
	return p, nil
}

func (d *decoder) sheet(p *decodedChunk) {
	now := d.int()
	for len(d.b) > 0 && d.err == nil {
		kind, name := d.byte(), d.string()
		c := hostTiming{d.millis(), d.millis()}
		n := d.int()
		p.weigh(d, len(name))
		if n < 0 || n > int64(len(d.b)) {
			d.err = errChunk
		}
		switch {
		case d.err != nil:
		case kind == groupWaiting && len(name) > 0 && len(name) <= maxHost && strings.IndexByte(name, '/') < 0:
			p.waiting = append(p.waiting, arrived{host: name, clock: c, items: d.items(p, name, int(n))})
		case kind == groupKnown && len(name) <= maxURL:
			p.known = append(p.known, learnt{host: item.HostOf(name + "/"), clock: c, entries: d.entries(p, name, now, int(n))})
		default:
			d.err = errChunk
		}
	}
}

// weigh counts what was read, and ends it when that is too much.
func (p *decodedChunk) weigh(d *decoder, size int) {
	if p.weight += itemWeight + size; p.weight > 2*chunkWeight {
		d.err = errChunk
	}
}

// maxDelay is the longest delay between requests to a host that a chunk may have.
const maxDelay = 365 * 24 * time.Hour

func (d *decoder) millis() time.Duration {
	ms := d.int()
	if ms < 0 || ms > int64(maxDelay/time.Millisecond) {
		d.err = errChunk
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

func (d *decoder) items(p *decodedChunk, host string, n int) (items []item.Item) {
	for range n {
		it := d.item(host)
		if it.Depth < 0 || it.Robots != "" || it.Host() != host || max(len(it.URL), len(it.From), len(it.Seed),
			len(it.Path)) > maxURL {
			d.err = errChunk
		}
		if p.weigh(d, len(it.URL)+len(it.From)+len(it.Seed)+len(it.Path)); d.err != nil {
			return nil
		}
		if isCanonical(host, it.URL) { // an earlier version may have let others in
			items = append(items, it)
		}
	}
	return items
}

func (d *decoder) entries(p *decodedChunk, origin string, now int64, n int) (entries []seen.Entry) {
	if item.HostOf(origin+"/") == "" || originOfURL(origin+"/") != origin {
		d.err = errChunk
		return nil
	}
	for before := "/"; n > 0; n-- {
		e := seen.Entry{State: seen.State(d.byte()), Depth: int32(d.int()), First: time.Unix(now-60*d.int(), 0).UTC()}
		rest := d.rest(before)
		e.URL, before = origin+rest, rest
		meta, after, ok := seen.ReadMeta(d.b, now)
		if !ok || e.State > seen.Known || e.Depth < 0 || rest == "" || rest[0] != '/' || len(e.URL) > maxURL {
			d.err = errChunk
		}
		e.Meta, d.b = meta, after
		if p.weigh(d, len(e.URL)+len(e.ETag)); d.err != nil {
			return nil
		}
		entries = append(entries, e)
	}
	return entries
}

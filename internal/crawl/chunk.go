package crawl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"kumo/internal/entry"

	"github.com/klauspost/compress/zstd"

	"kumo/internal/item"
	"kumo/internal/seen"
	"kumo/internal/weburl"
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
	out    []byte        // sheets that are done
	sheet  entry.Encoder // the one at hand
	weight int           // of all

	group  []byte // its beginning: kind and name
	host   string // of waiting URLs
	count  int    // its URLs
	urls   entry.Encoder
	before string // the last known URL, by what is behind its origin
}

// size is about how much the chunk will have at the most.
func (p *chunkWriter) size() int { return len(p.out) + len(p.sheet.Writer) + len(p.urls.Writer) + 1024 }

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
	enc := entry.Encoder{Writer: p.group[:0]}
	enc.Byte(kind)
	enc.String(name)
	enc.Int(int64(c.asked / time.Millisecond))
	enc.Int(int64((max(c.wait, 0) + time.Millisecond - 1) / time.Millisecond))
	p.group = enc.Writer
	p.weight += itemWeight + len(name)
}

// item adds a URL that waits.
func (p *chunkWriter) item(it *item.Item) {
	p.urls.Writer = item.Append(p.urls.Writer, p.host, it)
	p.count++
	p.weight += itemWeight + len(it.URL) + len(it.From) + len(it.Seed) + len(it.Path)
}

// entry adds a URL that is known, by what is behind its origin.
func (p *chunkWriter) entry(rest string, v *seen.Entry) {
	e := &p.urls
	e.Writer = append(e.Writer, byte(v.State))
	e.Int(int64(v.Depth))
	e.Int((p.now.Unix() - v.First.Unix()) / 60)
	e.Suffix(rest, p.before)
	e.Writer = seen.AppendMeta(e.Writer, &v.Meta, p.now.Unix())
	p.before = rest
	p.count++
	p.weight += itemWeight + len(v.URL) + len(v.ETag)
}

// full reports whether the sheet is to end, because of what it has or unfolds to; a group may go on in the next.
func (p *chunkWriter) full() bool {
	return len(p.sheet.Writer)+len(p.urls.Writer) >= p.sheetMost || p.weight >= chunkWeight
}

func (p *chunkWriter) endGroup() {
	if len(p.group) == 0 {
		return
	}
	if len(p.sheet.Writer) == 0 {
		p.sheet.Int(p.now.Unix())
	}
	p.sheet.Writer = append(p.sheet.Writer, p.group...)
	p.sheet.Int(int64(p.count))
	p.sheet.Writer = append(p.sheet.Writer, p.urls.Writer...)
	p.group, p.count, p.urls.Writer = p.group[:0], 0, p.urls.Writer[:0]
}

// endSheet compresses the sheet, and reports whether the chunk is to be sent: another sheet might be too much.
func (p *chunkWriter) endSheet() bool {
	p.endGroup()
	if len(p.sheet.Writer) == 0 {
		return false
	}
	if len(p.out) == 0 {
		p.out = append(p.out, chunkVersion)
	}
	zipped := p.zip.EncodeAll(p.sheet.Writer, make([]byte, 0, len(p.sheet.Writer)/2))
	p.out = append(binary.AppendUvarint(p.out, uint64(len(zipped))), zipped...)
	p.sheet.Writer = p.sheet.Writer[:0]
	return len(p.out)+p.sheetMost+1024 > p.chunkMost || p.weight >= chunkWeight
}

// chunk returns what was packed, and begins anew.
func (p *chunkWriter) chunk() []byte {
	p.endSheet()
	data := p.out
	p.out, p.weight = nil, 0
	return data
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
		d := entry.NewDecoder(u.sheet)
		d.Text.Share = sheetBytes
		if (sheetReader{d, p}).read(); d.Bad {
			return nil, errChunk
		}
		data = data[size+int(n):]
	}
	return p, nil
}

// A sheetReader reads a sheet into a chunk.
type sheetReader struct {
	*entry.Decoder
	chunk *decodedChunk
}

func (d sheetReader) read() {
	p := d.chunk
	now := d.Int()
	for len(d.Rest) > 0 && !d.Bad {
		kind, name := d.Byte(), d.String()
		c := hostTiming{d.millis(), d.millis()}
		n := d.Int()
		d.weigh(len(name))
		if n < 0 || n > int64(len(d.Rest)) {
			d.Bad = true
		}
		switch {
		case d.Bad:
		case kind == groupWaiting && len(name) > 0 && len(name) <= maxHost && strings.IndexByte(name, '/') < 0:
			p.waiting = append(p.waiting, arrived{host: name, clock: c, items: d.items(name, int(n))})
		case kind == groupKnown && len(name) <= entry.MaxURL:
			p.known = append(p.known, learnt{host: item.HostOf(name + "/"), clock: c, entries: d.entries(name, now, int(n))})
		default:
			d.Bad = true
		}
	}
}

// weigh counts what was read, and ends it when that is too much.
func (d sheetReader) weigh(size int) {
	if d.chunk.weight += itemWeight + size; d.chunk.weight > 2*chunkWeight {
		d.Bad = true
	}
}

// maxDelay is the longest delay between requests to a host that a chunk may have.
const maxDelay = 365 * 24 * time.Hour

func (d sheetReader) millis() time.Duration {
	ms := d.Int()
	if ms < 0 || ms > int64(maxDelay/time.Millisecond) {
		d.Bad = true
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

func (d sheetReader) items(host string, n int) (items []item.Item) {
	for range n {
		it := d.Item(host)
		if it.Depth < 0 || it.Robots != "" || it.Host() != host || max(len(it.URL), len(it.From), len(it.Seed),
			len(it.Path)) > entry.MaxURL {
			d.Bad = true
		}
		if d.weigh(len(it.URL) + len(it.From) + len(it.Seed) + len(it.Path)); d.Bad {
			return nil
		}
		if isCanonical(host, it.URL) { // an earlier version may have let others in
			items = append(items, it)
		}
	}
	return items
}

func (d sheetReader) entries(origin string, now int64, n int) (entries []seen.Entry) {
	if item.HostOf(origin+"/") == "" || originOfURL(origin+"/") != origin {
		d.Bad = true
		return nil
	}
	for before := "/"; n > 0; n-- {
		e := seen.Entry{State: seen.State(d.Byte()), Depth: int32(d.Int()), First: time.Unix(now-60*d.Int(), 0).UTC()}
		rest := d.Suffix(before, entry.MaxURL)
		e.URL, before = origin+rest, rest
		meta, after, ok := seen.ReadMeta(d.Rest, now)
		if !ok || e.State > seen.Known || e.Depth < 0 || rest == "" || rest[0] != '/' || len(e.URL) > entry.MaxURL {
			d.Bad = true
		}
		e.Meta, d.Rest = meta, after
		if d.weigh(len(e.URL) + len(e.ETag)); d.Bad {
			return nil
		}
		entries = append(entries, e)
	}
	return entries
}

// isCanonical reports whether a URL is one of a host, in its one form.
func isCanonical(host, url string) bool {
	u, err := weburl.Parse(url)
	return err == nil && u.Web() && u.Host() == host && u.String() == url
}

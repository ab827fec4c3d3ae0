package warc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store/storetest"
)

// TestLongRecords stores responses of all lengths, in memory and on disk, with few and many links, among short ones.
// Each is read back by its index line, and no draft keeps a temporary file.
func TestLongRecords(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	for compression := range packers {
		t.Run(compression, func(t *testing.T) {
			dir, scratch := t.TempDir(), vfs.NewScratch(t.TempDir(), nil, 0)
			s := openTest(t, dir, func(c *Config) { c.Scratch, c.Compression, c.MaxSize = scratch, compression, 4<<20 })
			blocks := map[string][]byte{}
			for i, size := range []int{10, maxShort - 500, maxShort + 1, 3 << 20, 100, 5 << 20, 0} {
				for _, far := range []bool{false, true} {
					rec := storetest.Record(1)
					rec.URL = fmt.Sprintf("https://example.org/%d/%v", i, far)
					body := make([]byte, size)
					for i := range body {
						body[i] = byte(dice.Uint32())
					}
					raw := append([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"), body...)
					res := rec.Response
					res.Raw, res.HeadLen = raw, len(raw)-len(body)
					if res.Payload = raw[res.HeadLen:]; far {
						st, payload := scratch.New(), scratch.New()
						_, err := st.Write(raw)
						_, err2 := payload.Write(body)
						if err := errors.Join(err, err2); err != nil {
							t.Fatal(err)
						}
						res.Raw, res.Payload, res.Spooled = nil, nil, &page.Spooled{Raw: st, Payload: payload}
						defer func() { st.Free(); payload.Free() }()
					}
					if i%2 == 1 {
						for n := range 20_000 {
							rec.Page.Links = append(rec.Page.Links, page.Link{URL: fmt.Sprintf("https://example.org/%d/%x", n,
								dice.Uint64()), Kind: page.Anchor})
						}
					}
					before := scratch.Used()
					put(t, s, rec)
					if used := scratch.Used(); used > before {
						t.Errorf("%s: %d bytes of the temporary file are kept", rec.URL, used-before)
					}
					blocks[rec.URL] = raw
				}
			}
			closeTest(t, s)
			index := readIndex(t, filepath.Join(dir, "index.cdxj"))
			if len(index) != len(blocks) {
				t.Errorf("%d index lines for %d visits", len(index), len(blocks))
			}
			for _, e := range index {
				rec := e.record(t, dir)
				if !rec.is("response") || !bytes.Equal(rec.block, blocks[e.URL]) || rec.head.Get("WARC-Payload-Digest") == "" {
					t.Errorf("%s: %s of %d bytes, want %d", e.URL, rec.head.Get("WARC-Type"), len(rec.block), len(blocks[e.URL]))
				}
			}
		})
	}
}

// A lost spool cannot be read.
type lost int64

func (l lost) Len() int64                        { return int64(l) }
func (l lost) ReadAt([]byte, int64) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestLongRecordsThatCannotBeRead tests that they leave nothing in the WARC file.
func TestLongRecordsThatCannotBeRead(t *testing.T) {
	for _, size := range []lost{100, 2 * maxShort} {
		s := openTest(t, t.TempDir(), nil)
		rec := storetest.Record(1)
		rec.Response.Raw, rec.Response.Payload, rec.Response.Spooled = nil, nil, &page.Spooled{Raw: size, Payload: size - 20}
		rec.Response.HeadLen = 20
		if err := s.Put(rec); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "long record") {
			t.Errorf("%d bytes: %v", size, err)
		}
		if s.cur != nil {
			t.Errorf("%d bytes: a WARC file was begun", size)
		}
	}
}

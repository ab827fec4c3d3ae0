package rebuild

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/repair/records"
	"kumo/internal/base/page"
	"kumo/internal/state/seen"
	"kumo/internal/state/store/warc"
)

func (b *rebuilding) eachRecord(ctx context.Context, f func(name string, rec *warc.Record) error) error {
	return records.EachWARC(b.Into, func(name string, _ io.ReaderAt, in *warc.Reader) error {
		for {
			rec, err := in.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err = errors.Join(err, ctx.Err()); err == nil {
				err = f(name, rec)
			}
			if err != nil {
				return err
			}
		}
	})
}

// records adds the data that is only in the responses: digests, and the validators for conditional requests.
func (b *rebuilding) records(ctx context.Context) error {
	n := 0
	answered := map[uint64]bool{} // by URL
	return b.eachRecord(ctx, func(name string, rec *warc.Record) error {
		if n++; n%1000 == 0 {
			if err := b.state.FlushIfFull(ctx); err != nil {
				return err
			}
		}
		stored := rec.Fields["WARC-Type"] == "response"
		if !stored && (rec.Fields["WARC-Type"] != "revisit" || len(rec.Block) == 0) {
			return nil
		}
		url := rec.Fields["WARC-Target-URI"]
		digest := b.places[records.Key(name, rec.Offset)].digest
		if !b.hasPageList() && !isRobots(url) {
			digest = rec.BodyDigest()
		}
		if digest == [20]byte{} {
			return nil
		}
		if stored {
			if err := b.stored(rec, digest); err != nil {
				return err
			}
		}
		resp, err := rec.Response()
		if err != nil {
			return nil //nolint:nilerr // it has no head to ask
		}
		_ = resp.Body.Close()
		k := records.Key(url)
		if resp.StatusCode >= http.StatusBadRequest && answered[k] {
			return nil
		}
		answered[k] = true
		m := seen.Meta{Digest: digest, ETag: resp.Header.Get("ETag"), Modified: page.LastModified(resp.Header)}
		b.state.Seen.UpdateMeta(url, m)
		return nil
	})
}

// stored registers a record with a body, to which revisits may refer.
func (b *rebuilding) stored(rec *warc.Record, digest [20]byte) error {
	at, err := time.Parse(time.RFC3339Nano, rec.Fields["WARC-Date"])
	if _, body, _ := bytes.Cut(rec.Block, []byte("\r\n\r\n")); err != nil || len(body) == 0 {
		return err
	}
	ref := seen.Ref{URL: rec.Fields["WARC-Target-URI"], Time: at, ID: rec.ID()}
	if copyDigest(ref.Chunked[:], rec.Fields["WARC-Payload-Digest"]); ref.Chunked == digest {
		ref.Chunked = [20]byte{}
	}
	b.state.Digests.Put(digest, ref)
	return nil
}

// hasPageList reports whether fetched pages are listed in pages.jsonl.
func (b *rebuilding) hasPageList() bool { return b.job.Writes(job.JSONL) }

func isRobots(url string) bool { return strings.HasSuffix(url, "/robots.txt") }

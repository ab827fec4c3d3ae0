package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base32"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
)

// A warc writes a request and a response record per visit, each as a gzip member at the fastest level.
type warc struct {
	members sync.Pool // of *member

	mu   sync.Mutex // guards the fields below
	file *os.File
	out  *bufio.Writer
}

// A member is a buffer for a visit's records.
type member struct {
	head, packed bytes.Buffer
	z            *gzip.Writer
}

func createWARC(path string) (*warc, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := &warc{file: f, out: bufio.NewWriterSize(f, 1<<20)}
	w.members.New = func() any {
		z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
		return &member{z: z}
	}
	return w, nil
}

func (w *warc) write(req *http.Request, resp *http.Response, body []byte) error {
	m := w.members.Get().(*member)
	defer w.members.Put(m)
	m.packed.Reset()
	now := time.Now().UTC().Format(time.RFC3339Nano)
	m.head.Reset()
	fmt.Fprintf(&m.head, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: gzip\r\n\r\n", req.URL.RequestURI(),
		req.URL.Host)
	if err := m.record("request", req.URL.String(), now, "", nil); err != nil {
		return err
	}
	m.head.Reset()
	fmt.Fprintf(&m.head, "%s %s\r\n", resp.Proto, resp.Status)
	_ = resp.Header.Write(&m.head) // writes to memory
	m.head.WriteString("\r\n")
	sum := sha1.Sum(body)
	digest := "WARC-Payload-Digest: sha1:" + base32.StdEncoding.EncodeToString(sum[:]) + "\r\n"
	if err := m.record("response", req.URL.String(), now, digest, body); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(m.packed.Bytes())
	return err
}

// record appends a record with the HTTP head in the member and a body.
func (m *member) record(kind, uri, date, fields string, body []byte) error {
	m.z.Reset(&m.packed)
	fmt.Fprintf(m.z, "WARC/1.1\r\nWARC-Type: %s\r\nWARC-Record-ID: <urn:uuid:%s>\r\nWARC-Date: %s\r\nWARC-Target-URI: "+
		"%s\r\n"+
		"Content-Type: application/http; msgtype=%s\r\n%sContent-Length: %d\r\n\r\n",
		kind, newUUID(), date, uri, kind, fields, m.head.Len()+len(body))
	for _, part := range [][]byte{m.head.Bytes(), body, []byte("\r\n\r\n")} {
		if _, err := m.z.Write(part); err != nil {
			return err
		}
	}
	return m.z.Close()
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (w *warc) close() error {
	if err := w.out.Flush(); err != nil {
		return err
	}
	return w.file.Close()
}

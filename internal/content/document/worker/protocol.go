package worker

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"kumo/internal/content/document"
)

// Both sides write frames: a length of four bytes and so many bytes of JSON. The parent begins with a hello, which the
// child answers with a reply when it is ready. Then each request is followed by the file's bytes, and answered by a
// reply.

// maxFrame bounds what one side accepts from the other.
const maxFrame = 128 << 20

// A Hello is what a child needs to know at its start.
type Hello struct {
	CacheDir string // of compiled code
	Memory   int64  // bytes for a document
	Total    int64  // bytes for the process
}

type request struct {
	Size     int64
	Limits   document.Limits
	Deadline time.Duration
}

type reply struct {
	Document *document.Document `json:",omitempty"`
	Problem  document.Problem   `json:",omitempty"` // why there is no document
	Detail   string             `json:",omitempty"`
}

func writeFrame(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(data) > maxFrame {
		return fmt.Errorf("frame of %d bytes: at most %d are allowed", len(data), maxFrame)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(data)), uint32(len(data))), data...))
	return err
}

func readFrame(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return fmt.Errorf("frame of %d bytes: at most %d are allowed", n, maxFrame)
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(n))) // grows with what is there, not with what is stated
	if err != nil {
		return err
	}
	if len(data) < int(n) {
		return io.ErrUnexpectedEOF
	}
	return json.Unmarshal(data, v)
}

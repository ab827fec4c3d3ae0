package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
)

// whole reads a response and its payload, from memory or disk.
func whole(t testing.TB, resp *page.Response) (raw, payload []byte) {
	t.Helper()
	raw, payload = resp.Raw, resp.Payload
	if resp.Spooled != nil {
		raw = make([]byte, resp.RawLen())
		if _, err := resp.Spooled.Raw.ReadAt(raw, 0); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		var err error
		if payload, err = io.ReadAll(resp.PayloadReader()); err != nil {
			t.Fatal(err)
		}
	}
	if int64(len(raw)) != resp.RawLen() || int64(len(payload)) != resp.PayloadLen() {
		t.Fatalf("%d and %d bytes, but lengths %d and %d", len(raw), len(payload), resp.RawLen(), resp.PayloadLen())
	}
	return raw, payload
}

// randomAnswer returns a response of random length and framing, sometimes after an interim one.
func randomAnswer(dice *rand.Rand) (answer, final string, body []byte) {
	body = make([]byte, dice.IntN(1+1<<dice.IntN(22)))
	for i := range body {
		body[i] = byte(dice.Uint32())
	}
	if dice.IntN(4) == 0 {
		answer = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
	}
	switch dice.IntN(3) {
	case 0:
		final = fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	case 1:
		final = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + string(body)
	case 2:
		var b strings.Builder
		b.WriteString("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for rest := body; len(rest) > 0; {
			n := min(1+dice.IntN(1<<dice.IntN(19)), len(rest))
			fmt.Fprintf(&b, "%x;%s\r\n%s\r\n", n, strings.Repeat("x", dice.IntN(100)), rest[:n])
			rest = rest[n:]
		}
		b.WriteString("0\r\nT: x\r\n\r\n")
		final = b.String()
	}
	return answer + final, final, body
}

// TestAnswersOnTheDiskAreThose fetches all kinds of responses with enough, little and no memory, into one Response. The
// results must be equal.
func TestAnswersOnTheDiskAreThose(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	var answer string
	url := "http://" + serve(t, func(_ int, conn net.Conn) {
		buf := make([]byte, 4096)
		if _, err := conn.Read(buf); err == nil {
			io.WriteString(conn, answer)
		}
	}) + "/"
	far := 0
	for _, memory := range []int64{1 << 40, 300 << 10, 0} {
		c, resp := newClient(t, Config{}), new(page.Response)
		c.budget.size = memory
		for range 40 {
			var final string
			var body []byte
			answer, final, body = randomAnswer(dice)
			if err := c.Get(t.Context(), Request{URL: url}, resp); err != nil {
				t.Fatal(err)
			}
			if resp.Spooled != nil {
				far++
			}
			raw, payload := whole(t, resp)
			if string(raw) != final || !bytes.Equal(payload, body) || resp.Truncated != "" {
				t.Fatalf("memory %d: %d of %d bytes, payload %d of %d, truncated %q", memory, len(raw), len(final), len(payload),
					len(body), resp.Truncated)
			}
			if err := Decode(resp, 1<<22); err != nil || !bytes.Equal(resp.Body, body) {
				t.Fatalf("memory %d: body of %d bytes, payload %d, %v", memory, len(resp.Body), len(body), err)
			}
		}
		resp.Buffers.Empty()
		if lent, used := c.budget.lent.Load(), c.scratch.Used(); lent != 0 || used != 0 {
			t.Errorf("memory %d: %d bytes are still lent, %d on the disk", memory, lent, used)
		}
	}
	if far == 0 {
		t.Error("no answer lay on the disk")
	}
}

// TestSecondAnswersOnTheDisk does the same over HTTP/2.
func TestSecondAnswersOnTheDisk(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
	s := httptest.NewUnstartedServer(handler(func(w http.ResponseWriter, _ *http.Request) { w.Write(body) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	c := newClient(t, Config{InsecureTLS: true})
	c.budget.size = 0
	resp := get(t, c, s.URL+"/")
	raw, payload := whole(t, resp)
	if resp.Proto != "HTTP/2.0" || resp.Spooled == nil || !bytes.Equal(payload, body) ||
		!bytes.Equal(raw[resp.HeadLen:], body) {
		t.Errorf("%s, %d bytes of payload, on the disk: %v", resp.Proto, len(payload), resp.Spooled != nil)
	}
	resp.Buffers.Empty()
}

// TestDecodeFromTheDisk decodes payloads that are on disk.
func TestDecodeFromTheDisk(t *testing.T) {
	var text []byte
	for i := range 20_000 {
		text = fmt.Appendf(text, "<p>%x</p>", i*i*7919)
	}
	for _, codings := range [][]string{{"gzip"}, {"deflate"}, {"raw"}, {"br"}, {"zstd"}, {"gzip", "br"}} {
		payload := encode(t, text, codings...)
		url := answering(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\nX: %s\r\n\r\n%s",
			strings.Replace(strings.Join(codings, ", "), "raw", "deflate", 1), len(payload), strings.Repeat("x", readSize-2000),
			payload), false)
		c := newClient(t, Config{})
		c.budget.size = 0
		resp := get(t, c, url)
		if err := Decode(resp, 1<<24); err != nil || !bytes.Equal(resp.Body, text) || resp.Spooled == nil {
			t.Errorf("%v: %v, %d bytes of %d, on the disk: %v", codings, err, len(resp.Body), len(text), resp.Spooled != nil)
		}
		if err := Decode(resp, 1000); !errors.Is(err, ErrTooLong) || !bytes.Equal(resp.Body, text[:1000]) {
			t.Errorf("%v: %v, %d bytes of 1000", codings, err, len(resp.Body))
		}
		resp.Buffers.Empty()
	}
}

// TestStalledAnswersHoldLittle has many servers send much data and then stall, until all of them have: the budget is not
// exceeded, and is returned.
func TestStalledAnswersHoldLittle(t *testing.T) {
	const servers, size = 50, 3 << 20
	var sent sync.WaitGroup
	sent.Add(servers)
	stalled := make(chan struct{})
	url := "http://" + serve(t, func(n int, conn net.Conn) {
		buf := make([]byte, 4096)
		if _, err := conn.Read(buf); err != nil {
			return
		}
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size+1)
		_, _ = conn.Write(make([]byte, size))
		sent.Done()
		<-stalled
	}) + "/"
	c := newClient(t, Config{Memory: 4 << 20})
	var all sync.WaitGroup
	for range servers {
		all.Go(func() {
			resp := new(page.Response)
			if err := c.Get(t.Context(), Request{URL: url}, resp); err != nil {
				t.Error(err)
			}
			if resp.PayloadLen() != size || resp.Truncated != page.Disconnect {
				t.Errorf("%d bytes, truncated %q", resp.PayloadLen(), resp.Truncated)
			}
			resp.Buffers.Empty()
		})
	}
	sent.Wait()
	if lent := c.budget.lent.Load(); lent > 4<<20 {
		t.Errorf("%d bytes are lent", lent)
	}
	close(stalled)
	all.Wait()
	if lent, used := c.budget.lent.Load(), c.scratch.Used(); lent != 0 || used != 0 {
		t.Errorf("%d bytes are still lent, %d on the disk", lent, used)
	}
}

// TestAnswersWaitForTheDisk fills the disk for a while: the server is not read during that time, and the response is
// complete. If the disk stays full for too long, the response is truncated.
func TestAnswersWaitForTheDisk(t *testing.T) {
	for _, enough := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			body := strings.Repeat("0123456789abcdef", 10_000)
			begun := time.Now()
			room := func() (uint64, error) {
				if enough && time.Since(begun) > 20*time.Second {
					return 1 << 40, nil
				}
				return 0, nil
			}
			c := newClient(t, Config{Scratch: vfs.NewScratch(t.TempDir(), room, 1), Timeout: 10 * time.Second,
				MaxTime: time.Minute})
			defer c.Close()
			c.budget.size = 0
			piped(t, c, func(conn net.Conn) {
				buf := make([]byte, 4096)
				_, _ = conn.Read(buf)
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			})
			resp := new(page.Response)
			if err := c.Get(t.Context(), Request{URL: "http://a.example/"}, resp); err != nil {
				t.Fatal(err)
			}
			_, payload := whole(t, resp)
			if enough && (string(payload) != body || resp.Truncated != "") || !enough && resp.Truncated != page.Time {
				t.Errorf("room in time: %v; %d bytes of %d, truncated %q after %v", enough, len(payload), len(body), resp.Truncated,
					time.Since(begun))
			}
			resp.Buffers.Empty()
		})
	}
}

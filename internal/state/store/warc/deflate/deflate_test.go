package deflate

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	kflate "github.com/klauspost/compress/flate"
)

// text returns text that resembles the links of a page.
func text(rnd *rand.Rand, size int) []byte {
	var b bytes.Buffer
	for b.Len() < size {
		fmt.Fprintf(&b, "outlink: https://www.example.org/section/%d/page-%x.html L a\r\n", rnd.IntN(20), rnd.Uint32())
	}
	return b.Bytes()[:size]
}

func noise(rnd *rand.Rand, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// check inflates with two other implementations; each must end exactly where the stream does.
func check(t *testing.T, e *Encoder, src []byte) []byte {
	t.Helper()
	out := e.Append([]byte("before"), src)
	stream, ok := bytes.CutPrefix(out, []byte("before"))
	if !ok {
		t.Fatalf("what was there before is %q", out[:min(len(out), 6)])
	}
	for name, open := range map[string]func(io.Reader) io.ReadCloser{"compress/flate": flate.NewReader,
		"klauspost": kflate.NewReader} {
		in := bytes.NewReader(stream)
		got, err := io.ReadAll(open(in))
		if err != nil || !bytes.Equal(got, src) || in.Len() > 0 {
			t.Fatalf("%s: %d bytes come back as %d (%v), %d of the stream left over", name, len(src), len(got), err, in.Len())
		}
	}
	return stream
}

func TestRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	cases := map[string][]byte{
		"nothing":          nil,
		"a byte":           {0xff},
		"all bytes":        all[:],
		"one byte often":   bytes.Repeat([]byte{0}, 3*window),
		"text":             text(rnd, 4000),
		"text, noise":      append(text(rnd, 1000), noise(rnd, 9000)...),
		"text, noise, end": append(append(text(rnd, 1000), noise(rnd, 9000)...), "\r\n\r\n"...),
		"much noise":       noise(rnd, 3*window+5),
		"much text":        text(rnd, 3*window+5),
		"far repetition":   bytes.Repeat(noise(rnd, maxDistance), 2),
		"too far":          bytes.Repeat(noise(rnd, maxDistance+1), 2),
		"windows":          noise(rnd, 2*window),
	}
	for length := range 600 { // all match lengths and remainders
		n := noise(rnd, 700)
		cases[fmt.Sprintf("match of %d", length)] = append(append(n, n[:length]...), noise(rnd, 9)...)
	}
	for i := range 2000 {
		distance := 1 + rnd.IntN(maxDistance)
		if i < 300 {
			distance = 1 + i
		}
		n := noise(rnd, distance)
		cases[fmt.Sprintf("distance %d", distance)] = append(n, n[:min(distance, 20)]...)
	}
	var e Encoder
	for name, src := range cases {
		t.Run(name, func(t *testing.T) { check(t, &e, src) })
	}
}

func TestSize(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var e Encoder
	for _, c := range []struct {
		name     string
		src      []byte
		min, max int
	}{
		{"text", text(rnd, 4000), 500, 1200},
		{"noise", noise(rnd, 9000), 9001, 9005},
		{"much noise", noise(rnd, 10*window), 10 * window, 10*window + 50},
		{"noise twice", bytes.Repeat(noise(rnd, 9000), 2), 9005, 9500},
		{"small noise", noise(rnd, minStored-1), 100, minStored * 9 / 8},
		{"one byte often", bytes.Repeat([]byte{'a'}, 50_000), 20, 400},
	} {
		if n := len(check(t, &e, c.src)); n < c.min || n > c.max {
			t.Errorf("%s: %d bytes became %d, want from %d to %d", c.name, len(c.src), n, c.min, c.max)
		}
	}
}

func TestAllocations(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var e Encoder
	src, dst := append(text(rnd, 3000), noise(rnd, 9000)...), make([]byte, 0, 1<<16)
	if n := testing.AllocsPerRun(100, func() { e.Append(dst, src) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzAppend(f *testing.F) {
	for _, s := range []string{"", "a", "abcabcabcabcabcd", strings.Repeat("\xff", 300),
		strings.Repeat("0123456789", 40)} {
		f.Add([]byte(s), uint16(1), uint16(300))
	}
	var e Encoder
	f.Fuzz(func(t *testing.T, src []byte, again, noisy uint16) {
		check(t, &e, src)
		// Input that a fuzzer does not generate: distant matches with noise in between.
		rnd := rand.New(rand.NewPCG(uint64(noisy), 1))
		long := append(bytes.Clone(src), noise(rnd, int(noisy))...)
		check(t, &e, append(long, long[:min(len(long), int(again))]...))
	})
}

func BenchmarkAppend(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for name, src := range map[string][]byte{"text": text(rnd, 3000), "noise": noise(rnd, 9000)} {
		b.Run(name, func(b *testing.B) {
			var e Encoder
			var out []byte
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				out = e.Append(out[:0], src)
			}
			b.ReportMetric(float64(len(out)), "outbytes")
		})
		b.Run(name+"/klauspost1", func(b *testing.B) {
			z, _ := kflate.NewWriter(nil, 1)
			var out bytes.Buffer
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				out.Reset()
				z.Reset(&out)
				_, _ = z.Write(src)
				_ = z.Close()
			}
			b.ReportMetric(float64(out.Len()), "outbytes")
		})
	}
}

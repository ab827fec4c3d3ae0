package synthweb

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkServer measures the rate over keep-alive connections, with clients that ignore the responses.
func BenchmarkServer(b *testing.B) {
	for _, coding := range []string{"identity", "gzip"} {
		b.Run(coding, func(b *testing.B) {
			w := New(Clean(1, 20, 10_000))
			s := serve(b, w, ServeOptions{})
			b.ReportAllocs()
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				c := rawClient(b, s)
				defer c.Close()
				in := bufio.NewReaderSize(c, 64<<10)
				for n := 1; pb.Next(); n++ {
					r := Ref{N: uint32(n % w.hosts[0].pages)}
					io.WriteString(c, "GET "+string(w.appendPath(nil, r,
						false))+" HTTP/1.1\r\nHost: h0000.synth.test\r\nAccept-Encoding: "+coding+"\r\n\r\n")
					if err := skipAnswer(in); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

func rawClient(b *testing.B, s *Server) net.Conn {
	c, err := net.Dial("tcp4", s.Addr("h0000.synth.test").String())
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func skipAnswer(in *bufio.Reader) error {
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			_, err = in.Discard(length)
			return err
		}
		if v, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
			length, _ = strconv.Atoi(strings.TrimSpace(v))
		}
	}
}

// BenchmarkPage measures the work for one response, without the network.
func BenchmarkPage(b *testing.B) {
	w := New(Clean(1, 20, 10_000))
	p := &writer{w: w, port: 80}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		p.answer(Ref{N: uint32(n % w.hosts[0].pages)}, "/")
		p.gzipped(func([]byte) {})
		n++
	}
}

func BenchmarkTruth(b *testing.B) {
	w := New(Messy(1, 100, 20_000))
	for b.Loop() {
		w.Truth(TruthOptions{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/20_000, "ns/page")
}

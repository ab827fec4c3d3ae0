package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"

	"kumo/internal/archive/place/bucket/buckettest"
)

// buckets holds each story's server of S3's protocol by its work folder.
var buckets sync.Map // string → *bucketServer

// A bucketServer is a server of S3's protocol at a fixed address, be it up or down.
type bucketServer struct {
	store   http.Handler
	answers atomic.Pointer[http.Handler]
	address string
	running *http.Server // nil: no server answers
}

// s3Cmd makes the story's server go up or down, or answer with a status.
func s3Cmd(ts *testscript.TestScript, _ bool, args []string) {
	how := append(args, "up")[0]
	was, is := buckets.Load(ts.Getenv("WORK"))
	if !is {
		was = newBucketServer(ts)
	}
	b := was.(*bucketServer)
	switch status, err := strconv.Atoi(how); {
	case how == "up":
		b.serve(ts, b.store)
	case how == "down":
		b.stop()
	case err == nil:
		b.serve(ts, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	default:
		ts.Fatalf("s3 %s: up, down or a status is wanted", how)
	}
}

// s3Port is outside the range that a system assigns by itself, as the server is not always there to hold it.
const s3Port = 9000

var s3Servers atomic.Int64

func newBucketServer(ts *testscript.TestScript) *bucketServer {
	fake, err := buckettest.NewFake()
	ts.Check(err)
	fake.Close() // its handler is served here
	pid := os.Getpid()
	b := &bucketServer{store: fake.Config.Handler, address: fmt.Sprintf("127.%d.%d.%d:%d", 200+s3Servers.Add(1)%50,
		pid>>8&0xff, pid&0xff, s3Port)}
	ts.Defer(b.stop)
	for name, value := range buckettest.Environment(ts.MkAbs("none")) {
		ts.Setenv(name, value)
	}
	ts.Setenv("S3", buckettest.Options("http://"+b.address))
	buckets.Store(ts.Getenv("WORK"), b)
	return b
}

func (b *bucketServer) serve(ts *testscript.TestScript, h http.Handler) {
	b.answers.Store(&h)
	if b.running != nil {
		return
	}
	l, err := net.Listen("tcp", b.address)
	ts.Check(err)
	b.running = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*b.answers.Load()).ServeHTTP(w, r)
	})}
	go func(s *http.Server) { _ = s.Serve(l) }(b.running) // until it is closed
}

func (b *bucketServer) stop() {
	if b.running != nil {
		_ = b.running.Close() // connections, too
		b.running = nil
	}
}

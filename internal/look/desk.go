package look

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	version   = 1
	maxLooks  = 4                // answered at once; others wait
	writeWait = 30 * time.Second // until a reader who does not read is left
)

// A card is what the file says of a desk.
type card struct {
	Version int    `json:"version"`
	Host    string `json:"host"` // the machine
	Address string `json:"address"`
	Token   string `json:"token"`
}

// A Desk answers for a crawl that runs.
type Desk struct {
	file   string
	token  string
	src    Source
	server *http.Server
	listen net.Listener
	stop   context.CancelFunc
	places chan struct{}

	mu     sync.Mutex // guards below
	closed bool
	busy   sync.WaitGroup
}

// Open opens a desk for src, on a free port of the loopback address, and writes file. The caller calls Serve, and Close in the end.
func Open(file string, src Source) (_ *Desk, err error) {
	d := &Desk{file: file, token: rand.Text(), src: src, places: make(chan struct{}, maxLooks)}
	if d.listen, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	d.server = &http.Server{Handler: d.guard(d.mux()), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 64 << 10, BaseContext: func(net.Listener) context.Context { return ctx }}
	if err := d.announce(); err != nil {
		stop()
		return nil, errors.Join(err, d.listen.Close())
	}
	return d, nil
}

// announce writes the file in one go, readable by the crawl's user alone.
func (d *Desk) announce() error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	text, err := json.Marshal(card{version, host, d.listen.Addr().String(), d.token})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(d.file), filepath.Base(d.file)+".*") // which has mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), d.file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Serve answers until Close is called.
func (d *Desk) Serve() error {
	if err := d.server.Serve(d.listen); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close removes the file and ends what is being answered. Nobody asks the source any more when it returns.
func (d *Desk) Close() error {
	err := Withdraw(d.file)
	d.stop()
	err = errors.Join(err, d.server.Close())
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.busy.Wait()
	return err
}

// begin counts an answer; false if the desk is closed.
func (d *Desk) begin() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.busy.Add(1)
	}
	return !d.closed
}

// Withdraw removes the file of a desk. It is called by who begins to work on a crawl, too: one that was killed leaves the file.
func Withdraw(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what says where the crawl can be asked: %w", err)
	}
	return nil
}

// guard lets nobody in without the token, and only so many at once.
func (d *Desk) guard(next http.Handler) http.Handler {
	want := []byte("Bearer " + d.token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.begin() {
			return
		}
		defer d.busy.Done()
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "the token is not this crawl's", http.StatusUnauthorized)
			return
		}
		select {
		case d.places <- struct{}{}:
			defer func() { <-d.places }()
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	msmux "github.com/multiformats/go-multistream"
)

const (
	linkProtocol = protocol.ID("/kumo/messages/1")

	greetTime = 10 * time.Second
	writeTime = 30 * time.Second // for 64 KiB
	largeTime = time.Minute      // for the whole of a message beyond 64 KiB
)

// A link is a stream of messages with another node. The dialer of a connection opens it. A link and its connection end
// together. Each side first sends its node's name, preceded by its length in a byte.
type link struct {
	of      *Messenger
	stream  network.Stream
	relayed bool
	opened  bool // this node has opened the stream

	greeting     sync.Mutex // held until the name is sent
	closing      sync.Once
	closedUnused bool // one of the nodes has closed the unused link; written before the stream ends
}

func (m *Messenger) notifiee() network.Notifiee {
	return &network.NotifyBundle{
		ConnectedF: func(_ network.Network, c network.Conn) {
			if c.Stat().Direction == network.DirOutbound {
				m.work.Go(func() { m.openLink(c) })
			}
		},
		DisconnectedF: func(n network.Network, c network.Conn) {
			if len(n.ConnsToPeer(c.RemotePeer())) == 0 {
				m.failAwaited(c.RemotePeer())
			}
		},
	}
}

func (m *Messenger) openLink(c network.Conn) {
	ctx, cancel := context.WithTimeout(m.work.ctx, greetTime)
	defer cancel()
	s, err := c.NewStream(network.WithAllowLimitedConn(ctx, "messages"))
	if err != nil {
		_ = c.Close()
		return
	}
	_ = s.SetDeadline(time.Now().Add(greetTime)) // errors of the stream are reported by the next read or write
	if err := errors.Join(s.SetProtocol(linkProtocol), msmux.SelectProtoOrFail(linkProtocol, s)); err != nil {
		_ = c.Close()
		return
	}
	m.serve(&link{of: m, stream: s, relayed: c.Stat().Limited || isRelayed(c.RemoteMultiaddr()), opened: true})
}

func (m *Messenger) accepted(s network.Stream) {
	c := s.Conn()
	l := &link{of: m, stream: s, relayed: c.Stat().Limited || isRelayed(c.RemoteMultiaddr())}
	if !m.work.Go(func() { m.serve(l) }) {
		_ = s.Reset()
	}
}

// serve runs a link until it ends. The dialer sends its name first; the other side's name confirms that it has room.
func (m *Messenger) serve(l *link) {
	l.greeting.Lock() // no message may be sent before the name
	p, err := l.greet()
	l.greeting.Unlock()
	switch {
	case err == nil:
		err = l.read(p)
		l.close(err)
		m.detach(p, l, !l.wasUnused(err))
	case errors.Is(err, errFull):
		l.closeUnused(network.ConnResourceLimitExceeded)
	default:
		l.close(err)
	}
	if p != nil {
		m.forget(p)
	}
}

func (l *link) greet() (p *remote, err error) {
	_ = l.stream.SetDeadline(time.Now().Add(greetTime))
	defer func() { _ = l.stream.SetDeadline(time.Time{}) }()
	name := append([]byte{byte(len(l.of.cfg.Name))}, l.of.cfg.Name...)
	if l.opened {
		if _, err := l.stream.Write(name); err != nil {
			return nil, err
		}
	}
	theirs, err := readName(l.stream)
	if err != nil {
		return nil, err
	}
	node, err := nodeOf(theirs, l.stream.Conn().RemotePeer())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGarbage, err)
	}
	if p, err = l.of.attach(node, l); err != nil || l.opened {
		return p, err
	}
	if _, err = l.stream.Write(name); err != nil {
		l.of.detach(p, l, true)
	}
	return p, err
}

func readName(r io.Reader) (string, error) {
	var b [1 + maxName]byte
	if _, err := io.ReadFull(r, b[:1]); err != nil {
		return "", err
	}
	n := int(b[0])
	if n > maxName {
		return "", fmt.Errorf("name of %d bytes: %w", n, errGarbage)
	}
	if _, err := io.ReadFull(r, b[1:1+n]); err != nil {
		return "", err
	}
	return string(b[1 : 1+n]), nil
}

func (l *link) rank() int {
	if l.relayed {
		return 1
	}
	return 0
}

func (l *link) read(p *remote) error {
	m := l.of
	r := &frameReader{from: l.stream, acquireLarge: l.acquireLarge, release: func(n int) { m.large.Release(int64(n)) }}
	d := delivery{from: p.node, done: make(chan struct{}, 1)}
	for {
		var err error
		if d.frames, d.n, err = r.next(); err != nil {
			r.drop()
			return err
		}
		now := time.Now()
		p.used.Store(now.UnixNano())
		m.throttle(p.limiter.reserve(now, d.n, len(d.frames)))
		if !m.handOff(d) {
			return context.Cause(m.work.ctx) // the buffer may still be in use: it is not reused
		}
		if len(d.frames) > largeBuffer {
			_ = l.stream.SetReadDeadline(time.Time{})
		}
	}
}

// acquireLarge waits for memory for a large message, and sets a time limit for its arrival.
func (l *link) acquireLarge(size int) error {
	if err := l.of.large.Acquire(l.of.work.ctx, int64(size)); err != nil {
		return err
	}
	return l.stream.SetReadDeadline(time.Now().Add(largeTime))
}

// write sends frames. It is called by one goroutine at a time.
func (l *link) write(frames []byte) error {
	l.greeting.Lock()
	l.greeting.Unlock() //nolint:staticcheck // it is only waited for
	for len(frames) > 0 {
		n := min(len(frames), largeBuffer)
		if err := l.stream.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
			return err
		}
		if _, err := l.stream.Write(frames[:n]); err != nil {
			return err
		}
		frames = frames[n:]
	}
	return nil
}

func (l *link) close(err error) {
	l.closing.Do(func() {
		code := network.ConnNoError
		switch {
		case errors.Is(err, errGarbage):
			code = network.ConnProtocolViolation
			l.of.counts.garbage.Add(1)
			l.of.log("disconnected a node: %v", err)
			l.of.gater.ban(l.stream.Conn().RemotePeer())
		case l.of.work.isClosed():
			code = network.ConnShutdown
		}
		l.end(code)
	})
}

func (l *link) closeUnused(code network.ConnErrorCode) {
	l.closing.Do(func() {
		l.closedUnused = true
		l.end(code)
	})
}

func (l *link) end(code network.ConnErrorCode) {
	_ = l.stream.Conn().CloseWithError(code) // without resetting the stream, which would hide the code
}

// wasUnused reports whether one of the nodes has closed the link because it was not needed.
func (l *link) wasUnused(err error) bool {
	closed, is := errors.AsType[*network.ConnError](err)
	return l.closedUnused || is && closed.Remote &&
		(closed.ErrorCode == network.ConnGarbageCollected || closed.ErrorCode == network.ConnSupplanted)
}

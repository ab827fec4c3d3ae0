package netlab

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"kumo/internal/lab/sim/queue"
)

// A proxy is a port of the bridge that forwards packets later or never. It runs in one thread, so that its cost is
// known.
type proxy struct {
	socket  int // a packet socket
	wakeFD  int // eventfd that ends the thread
	running sync.WaitGroup
	traffic struct{ passed, lost, dropped, busy atomic.Int64 }

	mu     sync.Mutex // guards the following fields
	closed bool
	macs   map[netip.Addr]net.HardwareAddr
	links  map[uint64]*link // by sender and receiver address, see linkOf

	// Used by the thread only.
	dice  *rand.Rand
	queue packetQueue
	spare [][]byte // buffers of equal size
}

// A link carries the packets from one address to another.
type link struct {
	path    Path
	mac     net.HardwareAddr // MAC address of the receiver
	last    time.Time        // due time of the last packet on the link
	waiting int
}

// Traffic counts the work of a lab's proxy.
type Traffic struct {
	Passed  int64         // packets
	Lost    int64         // by the loss of a path
	Dropped int64         // because a queue was full
	Busy    time.Duration // processor time used, including the kernel's part
}

// Sub returns the difference to earlier counts.
func (t Traffic) Sub(o Traffic) Traffic {
	return Traffic{t.Passed - o.Passed, t.Lost - o.Lost, t.Dropped - o.Dropped, t.Busy - o.Busy}
}

// Traffic returns the counts of the proxy so far.
func (l *Lab) Traffic() Traffic {
	t := &l.proxy.traffic
	return Traffic{t.passed.Load(), t.lost.Load(), t.dropped.Load(), time.Duration(t.busy.Load())}
}

const (
	// vnetHeader is the size of the header that the kernel puts before a packet. It states that the checksum is not
	// computed yet, or that the packet must be split. It is written back unchanged.
	vnetHeader = 10
	ethernet   = 14
	header     = 20 // minimum size of an IP header
	// maxInFlight is the maximum number of packets of a pair that the proxy holds. It drops further ones, as a router
	// does.
	maxInFlight = 4096
	bufferSize  = 2048 // size of the buffers that are reused
	readBatch   = 256  // packets to read before due packets are written
)

// openProxy opens a proxy. Call it in the namespace of the device.
func openProxy(device string, seed uint64) (p *proxy, err error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return nil, err
	}
	p = &proxy{macs: make(map[netip.Addr]net.HardwareAddr), links: make(map[uint64]*link),
		dice: rand.New(rand.NewPCG(seed, 77))}
	if p.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return nil, fmt.Errorf("open an eventfd: %w", err)
	}
	if p.socket, err = openPort(dev.Index); err != nil {
		return nil, errors.Join(fmt.Errorf("listen to packets of %s: %w", device, err), unix.Close(p.wakeFD))
	}
	p.running.Go(p.run)
	return p, nil
}

func openPort(device int) (fd int, err error) {
	ipv4 := uint16(unix.ETH_P_IP>>8 | unix.ETH_P_IP<<8&0xff00) // in network byte order
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	for _, option := range []int{unix.PACKET_VNET_HDR, unix.PACKET_IGNORE_OUTGOING} {
		if err = unix.SetsockoptInt(fd, unix.SOL_PACKET, option, 1); err != nil {
			break
		}
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: ipv4, Ifindex: device})
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func (p *proxy) close() {
	p.mu.Lock()
	was := p.closed
	p.closed = true
	p.mu.Unlock()
	if was {
		return
	}
	_, _ = unix.Write(p.wakeFD, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // cannot fail for an eventfd
	p.running.Wait()
	_ = unix.Close(p.socket) // it has no buffered data
	_ = unix.Close(p.wakeFD)
}

func (p *proxy) setMAC(addrs []netip.Addr, mac net.HardwareAddr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, addr := range addrs {
		p.macs[addr] = mac
	}
}

func (p *proxy) set(way pair, path Path) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, to := way.from.As4(), way.to.As4()
	p.linkOf(binary.BigEndian.Uint64(append(from[:], to[:]...))).path = path
}

// linkOf returns the link of two addresses: sender, then receiver, as in a packet. mu is held.
func (p *proxy) linkOf(key uint64) *link {
	l := p.links[key]
	if l == nil {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], key)
		l = &link{mac: p.macs[netip.AddrFrom4([4]byte(b[4:]))]}
		p.links[key] = l
	}
	return l
}

func (p *proxy) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	buf := make([]byte, 128<<10)
	fds := []unix.PollFd{{Fd: int32(p.socket), Events: unix.POLLIN}, {Fd: int32(p.wakeFD), Events: unix.POLLIN}}
	for {
		var used unix.Timespec
		if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used) == nil {
			p.traffic.busy.Store(used.Nano())
		}
		_, _ = unix.Ppoll(fds, p.queue.wait(time.Now()), nil) // the next iteration resumes after an interruption
		if fds[1].Revents != 0 {
			return
		}
		p.read(buf)
		p.write(time.Now())
	}
}

func (p *proxy) read(buf []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range readBatch {
		n, err := unix.Read(p.socket, buf)
		if err != nil {
			return // no more packets, or the device is down
		}
		p.accept(buf[:n])
	}
}

// accept puts a packet on its link, unless it is lost; mu is held.
func (p *proxy) accept(data []byte) {
	if len(data) < vnetHeader+ethernet+header {
		return
	}
	frame := data[vnetHeader:]
	if !bytes.Equal(frame[:6], proxyMAC) {
		return // the bridge sends packets with an unknown MAC address to all ports
	}
	l := p.linkOf(binary.BigEndian.Uint64(frame[ethernet+12:]))
	switch {
	case l.mac == nil:
		return
	case p.dice.Float64() < l.path.Loss:
		p.traffic.lost.Add(1)
		return
	case l.waiting == maxInFlight:
		p.traffic.dropped.Add(1)
		return
	}
	copy(frame, l.mac)
	copy(frame[6:], proxyMAC)
	due := time.Now().Add(l.path.Delay)
	if l.path.Jitter > 0 {
		due = due.Add(time.Duration(p.dice.Int64N(int64(l.path.Jitter))))
	}
	if due.Before(l.last) {
		due = l.last // keeps packets in order
	}
	l.last = due
	l.waiting++
	p.queue.add(packet{due: due, link: l, data: append(p.buffer(len(data)), data...)})
}

// buffer returns an empty buffer with a capacity of at least n bytes.
func (p *proxy) buffer(n int) []byte {
	if n > bufferSize {
		return make([]byte, 0, n)
	}
	last := len(p.spare) - 1
	if last < 0 {
		return make([]byte, 0, bufferSize)
	}
	buf := p.spare[last]
	p.spare = p.spare[:last]
	return buf
}

func (p *proxy) write(now time.Time) {
	for len(p.queue.Heap) > 0 && !p.queue.Heap[0].due.After(now) {
		next := p.queue.Pop()
		if _, err := unix.Write(p.socket, next.data); err != nil {
			p.traffic.dropped.Add(1) // a packet that does not fit is lost
		} else {
			p.traffic.passed.Add(1)
		}
		p.mu.Lock()
		next.link.waiting--
		p.mu.Unlock()
		if cap(next.data) == bufferSize {
			p.spare = append(p.spare, next.data[:0])
		}
	}
}

// A packet is in flight.
type packet struct {
	due  time.Time
	seq  uint64 // order among packets with the same due time
	link *link
	data []byte
}

// Before reports whether p is due before o, or arrived first if both are due at the same time.
func (p packet) Before(o packet) bool {
	return p.due.Before(o.due) || p.due.Equal(o.due) && p.seq < o.seq
}

// A packetQueue orders packets by due time, then by arrival.
type packetQueue struct {
	queue.Heap[packet]
	nextSeq uint64
}

func (q *packetQueue) add(p packet) {
	q.nextSeq++
	p.seq = q.nextSeq
	q.Push(p)
}

// wait returns the time until the first packet is due; nil: no packet.
func (q *packetQueue) wait(now time.Time) *unix.Timespec {
	if len(q.Heap) == 0 {
		return nil
	}
	t := unix.NsecToTimespec(int64(max(0, q.Heap[0].due.Sub(now))))
	return &t
}

package netlab

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A proxy is a port of the bridge that passes packets on, later or never.
type proxy struct {
	file    *os.File // a packet socket
	running sync.WaitGroup
	closed  chan struct{}
	lost    atomic.Int64 // as was asked for

	mu    sync.Mutex // guards what follows
	dice  *rand.Rand
	macs  map[netip.Addr]net.HardwareAddr
	paths map[pair]Path
	lines map[pair]chan parcel
}

// A parcel is a packet that is on its way.
type parcel struct {
	due  time.Time
	data []byte
}

const (
	// offload is the size of what the kernel puts before a packet to say that its checksum is yet to be computed, or that it is to
	// be split. It is handed back as it was got.
	offload = 10
	// onTheWay is how many packets of a pair the proxy keeps; it drops what comes beyond, as a router does.
	onTheWay = 4096
)

// openProxy is to be called in the namespace of the device.
func openProxy(device string, seed uint64) (*proxy, error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return nil, err
	}
	ipv4 := uint16(unix.ETH_P_IP>>8 | unix.ETH_P_IP<<8&0xff00) // in the order of the network
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket: %w", err)
	}
	file := os.NewFile(uintptr(fd), "the proxy's port")
	for _, option := range []int{unix.PACKET_VNET_HDR, unix.PACKET_IGNORE_OUTGOING} {
		if err = unix.SetsockoptInt(fd, unix.SOL_PACKET, option, 1); err != nil {
			break
		}
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: ipv4, Ifindex: dev.Index})
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("listen to packets of %s: %w", device, err)
	}
	p := &proxy{file: file, closed: make(chan struct{}), dice: rand.New(rand.NewPCG(seed, 77)),
		macs: make(map[netip.Addr]net.HardwareAddr), paths: make(map[pair]Path), lines: make(map[pair]chan parcel)}
	p.running.Go(p.read)
	return p, nil
}

func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed:
		return
	default:
	}
	close(p.closed)
	p.file.Close()
	p.mu.Unlock()
	p.running.Wait()
	p.mu.Lock()
}

func (p *proxy) learn(addrs []netip.Addr, mac net.HardwareAddr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, addr := range addrs {
		p.macs[addr] = mac
	}
}

func (p *proxy) set(way pair, path Path) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paths[way] = path
}

// read takes packets until the proxy is closed.
func (p *proxy) read() {
	buf := make([]byte, 128<<10)
	for {
		n, err := p.file.Read(buf)
		if err != nil {
			select {
			case <-p.closed:
				return
			default:
				continue // the device was down
			}
		}
		p.accept(append([]byte(nil), buf[:n]...))
	}
}

// accept puts a packet on its line, unless it is lost.
func (p *proxy) accept(data []byte) {
	const ethernet, header = 14, 20
	if len(data) < offload+ethernet+header {
		return
	}
	frame := data[offload:]
	if !bytes.Equal(frame[:6], proxyMAC) {
		return // the bridge sends packets for nobody to all ports
	}
	from, _ := netip.AddrFromSlice(frame[ethernet+12 : ethernet+16])
	to, _ := netip.AddrFromSlice(frame[ethernet+16 : ethernet+20])
	p.mu.Lock()
	defer p.mu.Unlock()
	way := pair{from, to}
	mac, path := p.macs[to], p.paths[way]
	if mac == nil {
		return
	}
	if p.dice.Float64() < path.Loss {
		p.lost.Add(1)
		return
	}
	copy(frame, mac)
	copy(frame[6:], proxyMAC)
	due := time.Now().Add(path.Delay)
	if path.Jitter > 0 {
		due = due.Add(time.Duration(p.dice.Int64N(int64(path.Jitter))))
	}
	select {
	case p.line(way) <- parcel{due, data}:
	default:
	}
}

// line is the queue of a pair; mu is held.
func (p *proxy) line(way pair) chan parcel {
	line := p.lines[way]
	if line == nil {
		line = make(chan parcel, onTheWay)
		p.lines[way] = line
		p.running.Go(func() { p.deliver(line) })
	}
	return line
}

// deliver passes on what is on a line, in order.
func (p *proxy) deliver(line chan parcel) {
	for {
		select {
		case <-p.closed:
			return
		case next := <-line:
			select {
			case <-p.closed:
				return
			case <-time.After(time.Until(next.due)):
			}
			_, _ = p.file.Write(next.data) // one that does not fit is lost, as others are
		}
	}
}

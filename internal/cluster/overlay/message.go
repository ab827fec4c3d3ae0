package overlay

import (
	"errors"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
)

// MaxMessage is the maximum size of a message in bytes: room for 48 of the longest contacts. Longer messages are
// refused. Most have about 15 bytes, lists about 1,000.
const MaxMessage = 128 << 10

// ErrMessage is the error of refused messages.
var ErrMessage = errors.New("overlay message: invalid or too large")

// Kinds of messages. In all but the farewell, the number of the query follows the kind.
const (
	pingQuestion = 'p' // checks that the receiver is alive
	pingAnswer   = 'P'
	findQuestion = 'f' // requests the known nodes closest to an id; id, count
	// number of exact contacts, contacts with the sender among them. The exact ones, at the front, are all nodes so
	// close to the id; one more than there are contacts: there are no other nodes
	findAnswer = 'F'
	// requests the neighbors; version of the receiver's list that the sender has (0: none), version of its own
	nearQuestion = 'n'
	nearAnswer   = 'N' // version; the contacts, unless the other node has that version
	farewell     = 'b'
)

// A parsedMessage is a decoded message.
type parsedMessage struct {
	kind    byte
	number  uint32
	id      xor.ID
	want    int
	have    uint32
	version uint32
	exact   int
	listed  bool // nearAnswer: contains contacts
	count   int
	list    []byte // encoded contacts
}

// sender is the sender's name in its own list of contacts.
const sender = ""

// parse decodes a message. Its list shares memory with data.
func parse(data []byte) (m parsedMessage, err error) {
	if len(data) > MaxMessage {
		return m, ErrMessage
	}
	r := varint.Reader{Rest: data}
	m.kind = r.Byte()
	if m.kind != farewell {
		m.number = read32(&r)
	}
	switch m.kind {
	case pingQuestion, pingAnswer, farewell:
	case findQuestion:
		copy(m.id[:], r.Take(xor.Size))
		m.want = int(min(r.Uint(), maxContacts))
	case findAnswer:
		exact := r.Uint()
		readList(&r, &m)
		if exact > uint64(m.count)+1 {
			return m, ErrMessage
		}
		m.exact = int(exact)
	case nearQuestion:
		m.have, m.version = read32(&r), read32(&r)
	case nearAnswer:
		m.version = read32(&r)
		if m.listed = r.Bool(); m.listed {
			readList(&r, &m)
		}
	default:
		return m, ErrMessage
	}
	if !r.Complete() {
		return m, ErrMessage
	}
	return m, nil
}

func read32(r *varint.Reader) uint32 {
	n := r.Uint()
	if n != uint64(uint32(n)) {
		r.Bad = true
	}
	return uint32(n)
}

// readList finds the end of a list of contacts, and checks the bounds of each.
func readList(r *varint.Reader, m *parsedMessage) {
	count := r.Uint()
	if count > maxContacts {
		r.Bad = true
		return
	}
	m.count, m.list = int(count), r.Rest
	for range m.count {
		if len(r.Bytes()) > MaxName {
			r.Bad = true
		}
		addrs := r.Uint()
		if addrs > MaxAddrs {
			r.Bad = true
			return
		}
		for range addrs {
			if len(r.Bytes()) > MaxAddr {
				r.Bad = true
			}
		}
	}
	m.list = m.list[:len(m.list)-len(r.Rest)]
}

// A reportedContact is a contact in a message. It shares the message's memory.
type reportedContact struct {
	name  []byte
	count int
	addrs []byte
}

// nextReported decodes a contact of a list that parse has checked.
func nextReported(r *varint.Reader) (c reportedContact) {
	c.name = r.Bytes()
	c.count = int(r.Uint())
	c.addrs = r.Rest
	for range c.count {
		r.Bytes()
	}
	c.addrs = c.addrs[:len(c.addrs)-len(r.Rest)]
	return c
}

// contact copies the contact, into one string and one slice.
func (c *reportedContact) contact(id xor.ID) Contact {
	all := make([]byte, 0, MaxName+128)
	all = append(all, c.name...)
	var ends [MaxAddrs]int
	r := varint.Reader{Rest: c.addrs}
	for i := range c.count {
		all = append(all, r.Bytes()...)
		ends[i] = len(all)
	}
	text := string(all)
	contact := Contact{Node: text[:len(c.name)], ID: id}
	if c.count > 0 {
		contact.Addrs = make([]string, c.count)
	}
	begin := len(c.name)
	for i := range contact.Addrs {
		contact.Addrs[i] = text[begin:ends[i]]
		begin = ends[i]
	}
	return contact
}

// head starts a message, with capacity for room more bytes.
func head(kind byte, number uint32, room int) varint.Writer {
	w := make(varint.Writer, 0, 6+room)
	w.Byte(kind)
	w.Uint(uint64(number))
	return w
}

// listRoom estimates the size of encoded contacts.
func listRoom(list []*peer) int {
	if len(list) == 0 {
		return 1
	}
	p := list[len(list)-1]
	room := 4 + len(p.Node)
	for _, a := range p.Addrs {
		room += 2 + len(a)
	}
	return 2 + room*len(list)
}

// writeList encodes contacts. self is the sender.
func writeList(w *varint.Writer, list []*peer, self *peer) {
	w.Uint(uint64(len(list)))
	for _, p := range list {
		if p == self {
			w.String(sender)
			w.Uint(0)
			continue
		}
		w.String(p.Node)
		w.Uint(uint64(len(p.Addrs)))
		for _, a := range p.Addrs {
			w.String(a)
		}
	}
}

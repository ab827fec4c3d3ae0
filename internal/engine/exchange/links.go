package exchange

import (
	"encoding/binary"
	"errors"

	"kumo/internal/base/item"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member"
	"kumo/internal/state/entry"
)

// ErrLinks is a batch that no outbox of this version has made.
var ErrLinks = errors.New("these are no links that this version of kumo understands")

// Read calls f with each link of a batch from another node's outbox, and with how it is written. Strings of all are
// parts of one copy of data. A batch comes from the network: whatever it is, what f was told is whole, but after an
// error it is not all.
func Read(data []byte, f func(c entry.Candidate, written []byte)) error {
	if len(data) == 0 || data[0] != member.LinksVersion {
		return ErrLinks
	}
	d := entry.NewDecoder(data[1:])
	d.Text.Share = len(data)
	for len(d.Rest) > 0 {
		n, size := binary.Uvarint(d.Rest)
		if size <= 0 || n > uint64(len(d.Rest)-size) {
			return ErrLinks
		}
		link := d.Rest[size : size+int(n)]
		rest := d.Rest[size+int(n):]
		d.Rest = link
		c := d.Candidate()
		if !d.Complete() || !isValid(&c) {
			return ErrLinks
		}
		d.Rest = rest
		f(c, link)
	}
	return nil
}

// maxWorth is more than links to a URL are worth that wait for another node.
const maxWorth = 1 << 30

// IsValid reports whether an item could be that of a link: Read refuses others.
func IsValid(it *item.Item) bool { return isValid(&entry.Candidate{Host: it.Host(), Item: *it}) }

// isValid reports whether a candidate is one that a node could have found: its URL is in its one form, and it has not
// waited anywhere yet.
func isValid(c *entry.Candidate) bool {
	u, err := weburl.Parse(c.Item.URL)
	it := c.Item
	it.Refetch = false // its record was lost with another node, perhaps
	return err == nil && u.String() == c.Item.URL && (!u.IsHTTP() || u.Host() == c.Host) && it.IsNew() &&
		c.Worth >= -maxWorth && c.Worth <= maxWorth &&
		c.Item.Depth >= 0 && len(c.Item.Path) <= entry.MaxPath && (c.Rule != "" || c.Why == "" && !c.Deferred)
}

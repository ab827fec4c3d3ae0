package exchange

import (
	"encoding/binary"
	"errors"

	"kumo/internal/base/item"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member"
	"kumo/internal/state/entry"
)

// ErrLinks means that a batch was not written by this version's outbox.
var ErrLinks = errors.New("not a batch of links that this version of kumo reads")

// Read calls f with each link of a batch from another node's outbox, and with the link's encoding. Strings are parts of
// one copy of data. As data comes from the network, it may be anything: each link that f gets is valid, but after an
// error, links are missing.
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

// maxWorth is larger than the worth of all links to a URL that an outbox may hold.
const maxWorth = 1 << 30

// IsValid reports whether an item can be that of a link; Read rejects others.
func IsValid(it *item.Item) bool { return isValid(&entry.Candidate{Host: it.Host(), Item: *it}) }

// isValid reports whether a node can have found a candidate: its URL is canonical, and it has not been queued anywhere
// yet.
func isValid(c *entry.Candidate) bool {
	u, err := weburl.Parse(c.Item.URL)
	it := c.Item
	it.Refetch = false // set if its record was lost with another node
	return err == nil && u.String() == c.Item.URL && (!u.IsHTTP() || u.Host() == c.Host) && it.IsNew() &&
		c.Worth >= -maxWorth && c.Worth <= maxWorth &&
		c.Item.Depth >= 0 && len(c.Item.Path) <= entry.MaxPath && (c.Rule != "" || c.Why == "" && !c.Deferred)
}

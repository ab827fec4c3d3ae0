package overlay

import (
	"cmp"
	"time"

	"kumo/internal/base/xor"
)

// Config configures an Overlay. All nodes of a network must have the same Width; other settings may differ. Zero values
// mean the defaults given.
type Config struct {
	Self Contact // this node; its ID is computed
	Seed uint64  // for random intervals, and random ids in lookups

	Width     int // number of significant bits of an id; all. Tests use spaces small enough to enumerate
	K         int // maximum contacts in a bucket; 10, at most 48
	Spares    int // maximum contacts in a bucket's replacement cache; 5
	Alpha     int // concurrent queries of a lookup; 3
	Neighbors int // number of nearest nodes that are watched; 16, at most 48

	Timeout time.Duration // until a query counts as failed; 1s
	// consecutive failed queries after which a contact is dead; 3. With 2 and a message loss of one in twenty, a live
	// neighbor would leave the table every few minutes
	Tries  int
	Notice time.Duration // maximum time until a neighbor's death is noticed; 10s

	Check   time.Duration // silence after which another contact is pinged; 5min
	Refresh time.Duration // about the time between lookups in the range of a bucket; 15min

	LookUps   int // concurrent lookups for Find; 32
	Questions int // concurrent queries; 256
	Contacts  int // contacts in the table besides neighbors; 1000
}

// maxContacts is the maximum number of contacts in a message.
const maxContacts = 64

func (c Config) withDefaults() Config {
	c.Width = cmp.Or(c.Width, xor.Bits)
	c.K = min(cmp.Or(c.K, 10), maxContacts-16)
	c.Spares = cmp.Or(c.Spares, 5)
	c.Alpha = cmp.Or(c.Alpha, 3)
	c.Neighbors = min(cmp.Or(c.Neighbors, 16), maxContacts-16)
	c.Timeout = cmp.Or(c.Timeout, time.Second)
	c.Tries = cmp.Or(c.Tries, 3)
	c.Notice = cmp.Or(c.Notice, 10*time.Second)
	c.Check = cmp.Or(c.Check, 5*time.Minute)
	c.Refresh = cmp.Or(c.Refresh, 15*time.Minute)
	c.LookUps = cmp.Or(c.LookUps, 32)
	c.Questions = cmp.Or(c.Questions, 256)
	c.Contacts = cmp.Or(c.Contacts, 1000)
	c.Self.ID = IDOf(c.Self.Node).Truncate(c.Width)
	return c
}

// breadth returns the maximum number of contacts in an answer.
func (c *Config) breadth() int { return max(c.K, c.Neighbors) + 1 }

// every returns the maximum time between two exchanges with a neighbor. It is Notice, less the time of the queries that
// show a neighbor's death, and less one Timeout for late timers.
func (c *Config) every() time.Duration {
	return max(c.Notice-time.Duration(c.Tries+1)*c.Timeout, c.Timeout)
}

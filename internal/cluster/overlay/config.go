package overlay

import (
	"cmp"
	"time"

	"kumo/internal/base/xor"
)

// Config is what an Overlay is made of. All nodes of a network have the same Width; the rest may differ.
type Config struct {
	Self Contact // this node; its ID is computed
	Seed uint64  // of what is random: intervals, ids that are looked up to refresh a bucket

	Width     int // how many bits of an id count; all. Tests use spaces so small that they can go through all of one
	K         int // contacts a bucket; 10, at most 48
	Spares    int // contacts a bucket that wait for a place in it; 5
	Alpha     int // questions that a look-up has under way; 3
	Neighbors int // how many of the nearest nodes are watched; 16, at most 48

	Timeout time.Duration // until a question counts as failed; 1s
	// a contact that has failed to answer so many questions, one after the other, is dead; 3. With 2, one lost message
	// in twenty takes a live neighbour out of the table every few minutes
	Tries  int
	Notice time.Duration // for so long at most a dead neighbour passes for alive; 10s

	Check   time.Duration // after so long without a message of it a contact that is no neighbour is asked; 5min
	Refresh time.Duration // after about so long without a look-up in its range a bucket is looked up; 15min

	LookUps   int // under way for Find; 32
	Questions int // under way; 256
	Contacts  int // in the table, beside neighbours; 1000
}

// maxContacts is how many contacts a message may have.
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

// breadth is how many contacts an answer has at most.
func (c *Config) breadth() int { return max(c.K, c.Neighbors) + 1 }

// every is the longest time between two exchanges with a neighbour: what Notice leaves after the questions that show
// that it is dead, and one more Timeout for what a late timer takes.
func (c *Config) every() time.Duration {
	return max(c.Notice-time.Duration(c.Tries+1)*c.Timeout, c.Timeout)
}

package seen

import "time"

// A clock counts minutes since the database was created.
type clock struct {
	now        func() time.Time
	created    int64     // Unix seconds
	uncreated  bool      // not in a manifest yet
	replayTime time.Time // time of the journal being replayed; zero: now
}

// Replay sets the time at which URLs of a journal were met; a zero time means now. No other method may run at the same
// time.
func (c *clock) Replay(past time.Time) {
	if c.replayTime = past; c.uncreated && !past.IsZero() {
		c.created, c.uncreated = min(c.created, past.Unix()), false
	}
}

func (c *clock) minutes() uint32 {
	if !c.replayTime.IsZero() {
		return c.minute(c.replayTime)
	}
	return c.minute(c.now())
}

func (c *clock) minute(t time.Time) uint32 { return uint32(max(t.Unix()-c.created, 0) / 60) }

func (c *clock) entry(url string, r record) (Entry, error) {
	meta, ok := readMeta(r.meta, c.created)
	if !ok {
		return Entry{}, damaged([]byte(url))
	}
	first := time.Unix(c.created+60*int64(r.first), 0).UTC()
	return Entry{URL: url, State: r.state, Depth: r.depth, First: first, Meta: meta}, nil
}

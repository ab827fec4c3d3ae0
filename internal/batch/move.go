package batch

import (
	"context"
	"net/http"
)

// A Move says where a seed redirects to. What is there is in scope, and is asked for each day, as if it were a seed:
// sites move from http to https, or to another name. What it redirects to in turn is a Move, too.
type Move struct {
	Collection, URL string // the key: a seed, or what one redirects to
	To              string // "" if it answers by itself again
}

// Key is the record's key.
func (m *Move) Key() []byte { return Key(m.Collection, m.URL) }

// Append appends the record's value.
func (m *Move) Append(b []byte) []byte {
	w := startValue(b, KindMove)
	w.String(m.To)
	return w
}

// ReadMove reads a record.
func ReadMove(key, value []byte) (m Move, err error) {
	r, err := openRecord(key, value, KindMove, &m.Collection, &m.URL)
	if err != nil {
		return m, err
	}
	m.To = r.String()
	return m, checkRead(r, KindMove)
}

// move emits a Move if a seed redirects elsewhere than before.
func (c *crawler) move(d *Document) error {
	m := Move{Collection: d.Collection, URL: d.URL, To: d.RedirectTo}
	was := c.members[d.Collection].moved[d.URL]
	if !d.Seed || m.To == was || m.To == "" && !d.hasPage() {
		return nil
	}
	return c.out.put(m.Key(), m.Append)
}

// hasPage reports whether the server has a page at the URL, sent or not.
func (d *Document) hasPage() bool { return d.Status == http.StatusOK || d.Unmodified }

// reachedBySeeds are those of the moves that begin at a seed, or where such a one leads.
func reachedBySeeds(seeds []string, moved map[string]string) map[string]string {
	reached := map[string]string{}
	for _, url := range seeds {
		for to := moved[url]; to != "" && reached[url] == ""; to = moved[url] {
			reached[url] = to
			url = to
		}
	}
	return reached
}

// applyMoves notes in the state where the round's seeds redirect to.
func (p *Pipeline) applyMoves(ctx context.Context, pt *collectionDay) error {
	names, err := ListFiles(ctx, p.Place, RoundFolder(pt.Collection, folders[KindMove], p.Date, pt.state.Next.Round))
	if err != nil {
		return err
	}
	return EachRecord(ctx, p.Place, names, func(r Record) error {
		m, err := ReadMove(r.Key, r.Value)
		if err != nil {
			return err
		}
		pt.state.move(&m)
		if f := p.Listener.Moved; f != nil {
			f(pt.Collection, &m)
		}
		return nil
	})
}

func (s *State) move(m *Move) {
	if m.To == "" {
		delete(s.Moved, m.URL)
		return
	}
	if s.Moved == nil {
		s.Moved = map[string]string{}
	}
	s.Moved[m.URL] = m.To
}

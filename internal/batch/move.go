package batch

import (
	"context"
	"net/http"
)

// A Move is the redirect of a seed. Its target is in scope and requested each day, as if it were a seed: sites move
// from http to https, or to another name. A redirect of the target is a Move, too.
type Move struct {
	Collection, URL string // the key: a seed, or a redirect target of one
	To              string // "" if it no longer redirects
}

// Key returns the record's key.
func (m *Move) Key() []byte { return Key(m.Collection, m.URL) }

// Append appends the record's value.
func (m *Move) Append(b []byte) []byte {
	w := startValue(b, KindMove)
	w.String(m.To)
	return w
}

// ReadMove decodes a record.
func ReadMove(key, value []byte) (m Move, err error) {
	r, err := openRecord(key, value, KindMove, &m.Collection, &m.URL)
	if err != nil {
		return m, err
	}
	m.To = r.String()
	return m, checkRead(r, KindMove)
}

// move emits a Move if the redirect of a seed changed.
func (c *crawler) move(d *Document) error {
	m := Move{Collection: d.Collection, URL: d.URL, To: d.RedirectTo}
	was := c.members[d.Collection].moved[d.URL]
	if !d.Seed || m.To == was || m.To == "" && !d.hasPage() {
		return nil
	}
	return c.out.put(m.Key(), m.Append)
}

// hasPage reports whether the server has a page for the URL, sent now or unchanged.
func (d *Document) hasPage() bool { return d.Status == http.StatusOK || d.Unmodified }

// reachedBySeeds returns the moves that begin at a seed, or continue such a move.
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

// applyMoves adds the redirects of the round's seeds to the state.
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

package meshnodes

import (
	"errors"

	"kumo/internal/app/session"
)

// CheckAlive returns an error if the node or its part of the crawl is stuck, or its folder cannot be written.
func (n *Node) CheckAlive() error {
	var err error
	if m := n.mesh.Load(); m != nil {
		err = session.StuckError("node loop", m.Silence())
	}
	if c := n.crawl.Load(); c != nil {
		err = errors.Join(err, c.CheckAlive())
	}
	return err
}

// CheckReady returns an error unless the node has joined the crawl, which may not have been started.
func (n *Node) CheckReady() error {
	switch {
	case n.leaving.Load():
		return errors.New("the node is leaving")
	case !n.router.HasPlace():
		return errors.New("the node has not joined the crawl yet")
	}
	if c := n.crawl.Load(); c != nil {
		return c.CheckReady()
	}
	return nil
}

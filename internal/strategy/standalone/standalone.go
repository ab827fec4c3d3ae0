// Package standalone is the strategy of a crawl that has one node: all hosts are its own. It stands where a strategy is asked for and
// there is nobody to share with.
package standalone

import (
	"fmt"
	"io"
	"time"

	"kumo/internal/strategy"
)

// New returns the strategy of the only node, which owns every host from the beginning and heeds no event.
func New(node strategy.Node) strategy.Strategy { return alone(node) }

// alone is the only node: strategy and view at once, because nothing changes.
type alone strategy.Node

var (
	_ strategy.Strategy = alone("")
	_ strategy.View     = alone("")
)

func (alone) Step(_ time.Time, _ []strategy.Event, out []strategy.Action) []strategy.Action {
	return out
}

func (a alone) View() strategy.View { return a }

func (a alone) Owner(string) (strategy.Node, strategy.State) {
	return strategy.Node(a), strategy.Owned
}

// Snapshot writes nothing: there is no state.
func (alone) Snapshot(io.Writer) error { return nil }

// Restore refuses what cannot be a snapshot of this strategy.
func (alone) Restore(r io.Reader) error {
	switch n, err := io.ReadFull(r, make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("restore standalone: the snapshot is another strategy's: it should be empty")
	case err != io.EOF:
		return fmt.Errorf("restore standalone: %w", err)
	}
	return nil
}

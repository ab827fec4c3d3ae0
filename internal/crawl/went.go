package crawl

import (
	"context"
	"slices"

	"kumo/internal/entry"

	"kumo/internal/member"
)

// Forget forgets the hosts that have come whole to other nodes (gone says which; nil: none), and then notes, durably,
// which transfers are done with: what comes back from there is not to be forgotten again.
func (e *Engine) Forget(ctx context.Context, gone func(host string) bool, whole []member.Transfer) error {
	if gone != nil {
		if err := e.forgetHosts(ctx, gone); err != nil {
			return err
		}
	}
	if len(whole) == 0 {
		return nil
	}
	var sequence uint64
	err := e.ledger.Within(func() error {
		var enc entry.Encoder
		enc.TransfersDone(whole)
		e.ledger.Enqueue(enc.Writer)
		sequence = e.ledger.Sequence()
		e.peers.transfer.mu.Lock()
		defer e.peers.transfer.mu.Unlock()
		e.peers.transfer.arrivals.Went = append(e.peers.transfer.arrivals.Went, whole...)
		return nil
	})
	if err != nil {
		return err
	}
	return e.ledger.WaitDurable(ctx, sequence)
}

func (s *State) TransfersDone(all []member.Transfer) {
	if !s.behind {
		s.arrivals.Went = append(s.arrivals.Went, all...)
	}
}

// Went are the transfers that Forget was told of since an epoch was settled.
func (s *State) Went() []member.Transfer { return slices.Clone(s.arrivals.Went) }

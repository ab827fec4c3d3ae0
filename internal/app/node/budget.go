package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"kumo/internal/cluster/budget"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// BudgetKey is the registry key of the division of the page limit; it does not exist without a limit.
const BudgetKey = "budget"

// Budget reads the division of the page limit, nil if there is none, and its revision.
func (c Control) Budget(ctx context.Context) (*budget.Budget, uint64, error) {
	e, err := c.Registry.Get(ctx, BudgetKey)
	if err != nil {
		return nil, 0, err
	}
	b, err := budget.Parse(e.Value)
	return b, e.Revision, err
}

// PutBudget replaces the budget of a revision; nil deletes it.
func (c Control) PutBudget(ctx context.Context, b *budget.Budget, rev uint64) error {
	if b == nil {
		return c.Registry.Delete(ctx, BudgetKey, rev)
	}
	value, err := json.Marshal(b)
	if err == nil && len(value) > bus.MaxData {
		err = bus.ErrTooLarge
	}
	if err == nil {
		_, err = c.Registry.Put(ctx, BudgetKey, value, rev)
	}
	if err != nil {
		return fmt.Errorf("divide the page limit: %w", err)
	}
	return nil
}

// SetFinalPages records in the budget the exact number of pages of a node that has ended for good.
func (c Control) SetFinalPages(ctx context.Context, n strategy.Node, pages int64) error {
	for {
		b, rev, err := c.Budget(ctx)
		if err != nil || b == nil || !b.SetFinal(n, pages) {
			return err
		}
		if err = c.PutBudget(ctx, b, rev); !errors.Is(err, bus.ErrStale) {
			return err
		}
	}
}

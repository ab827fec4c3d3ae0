package breadth_test

import (
	"testing"

	"kumo/internal/state/rank"
	"kumo/internal/state/rank/breadth"
	"kumo/internal/state/rank/ranktest"
)

func TestOrder(t *testing.T) { ranktest.Run(t, func() rank.Order { return breadth.New() }) }

package breadth_test

import (
	"testing"

	"kumo/internal/rank"
	"kumo/internal/rank/breadth"
	"kumo/internal/rank/ranktest"
)

func TestOrder(t *testing.T) { ranktest.Run(t, func() rank.Order { return breadth.New() }) }

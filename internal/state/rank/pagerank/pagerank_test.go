package pagerank_test

import (
	"testing"

	"kumo/internal/state/rank"
	"kumo/internal/state/rank/pagerank"
	"kumo/internal/state/rank/ranktest"
)

func TestOrder(t *testing.T) { ranktest.Run(t, func() rank.Order { return pagerank.New(0) }) }

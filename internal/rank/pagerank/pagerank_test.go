package pagerank_test

import (
	"testing"

	"kumo/internal/rank"
	"kumo/internal/rank/pagerank"
	"kumo/internal/rank/ranktest"
)

func TestOrder(t *testing.T) { ranktest.Run(t, func() rank.Order { return pagerank.New(0) }) }

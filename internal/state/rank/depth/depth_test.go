package depth_test

import (
	"testing"

	"kumo/internal/state/rank"
	"kumo/internal/state/rank/depth"
	"kumo/internal/state/rank/ranktest"
)

func TestOrder(t *testing.T) { ranktest.Run(t, func() rank.Order { return depth.New() }) }

func TestALinkFurtherIsHalfAsImportant(t *testing.T) {
	o := depth.New()
	for d := range int32(20) {
		if here, next := o.Importance(0, d), o.Importance(0, d+1); next != here/2 {
			t.Errorf("depth %d: %v, then %v", d, here, next)
		}
	}
}

package crawl

import (
	"context"
	"testing"
	"testing/synctest"

	"kumo/internal/base/page"
	"kumo/internal/content/parse"
)

func newTestOffice(s Shares) *readPool {
	return newReadPool(func(int64) Parser { return parse.New(parse.Config{}) }, s)
}

// TestSmallPagesPassLargeOnes: large pages wait for each other without holding an ordinary turn, and a stop ends the
// wait.
func TestSmallPagesPassLargeOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTestOffice(1) // room for only one large slot
		newWorker := func() *worker { return &worker{answer: answer{pool: o}} }
		first := newWorker()
		first.answer.acquireSlot()
		if !first.answer.acquireLargeSlot(t.Context()) || first.answer.room != o.shares.largeRoom() {
			t.Fatal("nobody is at the large desk, and it cannot be had")
		}
		ctx, stop := context.WithCancel(t.Context())
		left := make(chan bool, 100)
		for range cap(left) {
			go func() {
				w := newWorker()
				w.answer.acquireSlot()
				moved := w.answer.acquireLargeSlot(ctx)
				w.answer.release()
				left <- moved
			}()
		}
		synctest.Wait()
		var all []*worker
		for range cap(o.turns) - 1 { // the first answer has one
			w := newWorker()
			w.answer.acquireSlot()
			all = append(all, w)
		}
		if len(left) > 0 {
			t.Error("two are at one desk")
		}
		stop()
		synctest.Wait()
		if len(left) != cap(left) {
			t.Errorf("%d of %d have left when the crawl stops", len(left), cap(left))
		}
		for _, w := range append(all, first) {
			w.answer.release()
		}
		if len(o.turns) > 0 || len(o.large) != 1 {
			t.Errorf("%d places are still taken, %d large desks are free", len(o.turns), len(o.large))
		}
	})
}

// TestSharesAreWithinTheBudget adds up the maximum memory of the parts, for small and large budgets.
func TestSharesAreWithinTheBudget(t *testing.T) {
	for _, s := range []Shares{48 << 20, 56 << 20, 80 << 20, 1 << 30, 16 << 30} {
		desks := int64(s.slots()) * s.SlotRoom() * slotCost
		large := int64(s.largeSlots()) * 2 * s.largeRoom()
		if sum := s.Answers() + desks + large + int64(s.pending()) + int64(s.idleBuffers())*bufferSize; sum > int64(s)*3/2 {
			t.Errorf("%d MB: answers %d, desks %d, large %d, pending %d", s>>20, s.Answers()>>20, desks>>20, large>>20,
				s.pending()>>20)
		}
		if s.largeRoom() > int64(s) || s.SlotRoom() > s.largeRoom() || s.linksAtOnce(1<<20) < 1 {
			t.Errorf("%d MB: rooms of %d and %d bytes", s>>20, s.SlotRoom(), s.largeRoom())
		}
	}
}

// TestAResponseGivesBackWhatItWasLent: buffers are returned when the visit ends.
func TestAResponseGivesBackWhatItWasLent(t *testing.T) {
	var l lender
	freed := 0
	w := &worker{answer: answer{pool: newTestOffice(1 << 30)}}
	w.answer.resp.Buffers = page.Buffers{Raw: make([]byte, 10), Lent: 7, Lender: &l, Spooled: &page.Spooled{Free: func() { freed++ }}}
	w.answer.release()
	if l != 7 || freed != 1 || w.answer.resp.Buffers.Lent != 0 {
		t.Errorf("%d bytes are back, freed %d times", l, freed)
	}
}

type lender int64

func (l *lender) Return(n int64) { *l += lender(n) }

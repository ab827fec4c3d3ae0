package frontier

// A saver saves for a checkpoint that is being made what is about to change, as it was at the cut. The frontier's lock
// guards it. It is nil if all is in memory.
type saver struct {
	era int  // counts checkpoints
	cut *Cut // nil if none is being made
}

func (s *saver) currentEra() int {
	if s == nil {
		return 0
	}
	return s.era
}

// needsSave reports whether a host or bucket of an era is in a checkpoint that has yet to save it.
func (s *saver) needsSave(era int) bool { return s.cut != nil && era < s.era }

func (s *saver) saveHost(h *host) {
	if s != nil && s.needsSave(h.residence.era) {
		s.cut.saveHost(h)
		h.residence.era = s.era
	}
}

func (s *saver) saveBucket(b *bucket) {
	if s.needsSave(b.era) {
		s.cut.saveBucket(b)
		b.era = s.era
	}
}

// saveRecord saves the chunk of a record.
func (s *saver) saveRecord(id uint32) {
	if s.cut != nil {
		s.cut.saveChunk((id - 1) >> chunkBits)
	}
}

// initHost begins a checkpoint.
func (s *saver) begin(c *Cut) {
	s.era++
	s.cut = c
}

package frontier

// A saver saves the parts of the frontier for a checkpoint in progress, before they change. The frontier's lock guards
// it. It is nil if all is in memory.
type saver struct {
	era int  // number of checkpoints begun
	cut *Cut // nil if no checkpoint is in progress
}

func (s *saver) currentEra() int {
	if s == nil {
		return 0
	}
	return s.era
}

// needsSave reports whether a host or bucket that was last saved in an era must still be saved for the checkpoint in
// progress.
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

// saveRecord saves the chunk that contains a record.
func (s *saver) saveRecord(id uint32) {
	if s.cut != nil {
		s.cut.saveChunk((id - 1) >> chunkBits)
	}
}

// begin begins a checkpoint.
func (s *saver) begin(c *Cut) {
	s.era++
	s.cut = c
}

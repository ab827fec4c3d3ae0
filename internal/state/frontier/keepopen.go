package frontier

// KeepOpen says whether Next is to wait for a Push when there is nothing more to come, instead of returning ErrDry.
func (f *Frontier) KeepOpen(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stays = on
	f.signal()
}

// Dry reports whether nothing waits and nothing is under way. moves is another number when something was pushed or
// given back since an earlier call.
func (f *Frontier) Dry() (dry bool, moves uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting == 0 && f.inflight == 0, f.seq
}

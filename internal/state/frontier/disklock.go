package frontier

// A diskLock is held by the one goroutine that writes to the disk and reads for all: a caller of Next or WaitForRoom,
// of Close, or of a checkpoint's Write. Acquire it without the frontier's lock.
type diskLock struct {
	held   chan struct{}
	leader *leader
}

func newDiskLock(l *leader) *diskLock { return &diskLock{make(chan struct{}, 1), l} }

func (d *diskLock) acquire() { d.held <- struct{}{} }

// try acquires the lock if it is free. It does not wait, so it may be called with the frontier locked.
func (d *diskLock) try() bool {
	select {
	case d.held <- struct{}{}:
		return true
	default:
		return false
	}
}

func (d *diskLock) release() {
	<-d.held
	d.leader.signal() // there may be more to do
}

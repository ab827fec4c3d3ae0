package admin

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// A watch ends what nothing has come of for some time. A large log may take long, as long as it comes.
type watch struct {
	timer    *time.Timer
	patience time.Duration
	cancel   context.CancelCauseFunc
}

func watched(ctx context.Context, patience time.Duration) (context.Context, *watch) {
	patience = cmp.Or(patience, time.Minute)
	ctx, cancel := context.WithCancelCause(ctx)
	silent := fmt.Errorf("the cluster has said nothing for %v", patience)
	return ctx, &watch{time.AfterFunc(patience, func() { cancel(silent) }), patience, cancel}
}

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

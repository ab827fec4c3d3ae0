package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"kumo/internal/base/wait"
	"kumo/internal/view/progress"
)

// serviceInterval is the time between two reports to the service manager, unless its watchdog requires a shorter one.
const serviceInterval = 10 * time.Second

// notifyService reports to the service manager, if it started this process and expects reports (systemd's Type=notify).
// It reports that the crawl runs, its progress, and a watchdog signal with each status. A status needs the locks of
// queues and known URLs, so a deadlock stops the signals. It returns when watched ends; when ctx ends, it reports that
// the process is stopping.
func notifyService(ctx, watched context.Context, log *slog.Logger, status func() progress.Status) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return
	}
	tell := func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Warn("cannot report to the service manager", "err", err)
		}
	}
	every := serviceInterval
	if limit, err := daemon.SdWatchdogEnabled(false); err != nil {
		log.Warn("cannot read the service manager's watchdog interval", "err", err)
	} else if limit > 0 {
		every = min(every, limit/2)
	}
	tell(daemon.SdNotifyReady)
	defer context.AfterFunc(ctx, func() { tell(daemon.SdNotifyStopping) })()
	for range wait.Ticks(watched, every) {
		s := status()
		tell(fmt.Sprintf("STATUS=%d pages, %d URLs wait\n%s", s.Totals.Pages, s.Frontier.Waiting, daemon.SdNotifyWatchdog))
	}
}

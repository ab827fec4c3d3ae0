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

// serviceInterval is how often a service manager is told how far a crawl is, if its watchdog wants no more.
const serviceInterval = 10 * time.Second

// notifyService tells the service manager that has started this process, if one has that wants to know (systemd's
// Type=notify), that the crawl runs, how far it is, and, where a watchdog watches, that it lives: each time that its
// status could be taken, for which the locks of queues and known URLs must be free. It returns when watched ends; when
// ctx ends, the process is said to be stopping.
func notifyService(ctx, watched context.Context, log *slog.Logger, status func() progress.Status) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return
	}
	tell := func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Warn("the service manager cannot be told how the crawl goes", "err", err)
		}
	}
	every := serviceInterval
	if limit, err := daemon.SdWatchdogEnabled(false); err != nil {
		log.Warn("the service manager's watchdog is not understood", "err", err)
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

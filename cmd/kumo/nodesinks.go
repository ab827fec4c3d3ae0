package main

import (
	"errors"
	"log/slog"
	"path/filepath"

	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/app/wire/sinks"
	"kumo/internal/archive/sink/follow"
	"kumo/internal/base/advice"
	"kumo/internal/base/stats"
	"kumo/internal/view/telemetry"
)

// senderFactory returns a function that creates the sender of each session to the crawl's sinks.
func (n *nodeRunner) senderFactory(show *console, exporter *telemetry.Exporter) session.NewSender {
	watch := sinks.Watch{
		Failed: func(at string, err error) {
			show.log.Warn("the sink accepts no records: they stay in this node's folder, and kumo retries", "sink", at,
				"why", err.Error())
		},
		Works: func(at string) { show.log.Warn("the sink accepts records again", "sink", at) },
		GivenUp: func(err error) {
			show.log.Error("no more records are sent until the node starts again", "why", err.Error())
		},
		Patience: n.o.SinkWait,
	}
	return func(j *job.Job, urls []string) (session.Sender, error) {
		watch := watch
		watch.Attempt = exporter.TraceSending()
		g, err := sinks.NodeSender(j, urls, watch)
		if err != nil {
			return nil, err
		}
		return g, nil
	}
}

// withSinks returns the error of a run after which a sink lacks records. The run's own error decides the exit code.
func (n *nodeRunner) withSinks(u *session.IncompleteSending, show *console) error {
	err := u.SendErr
	if rest := follow.ResumeCommands(err, n.out); rest != "" && errors.Is(u.RunErr, node.ErrLeft) {
		err = advice.With(err, "this node has left the crawl; to send the rest, run: "+rest)
	}
	if run := n.endError(u.RunErr, show); run != nil {
		show.log.Warn(err.Error(), "do", advice.Of(err))
		return run
	}
	return err
}

// withSinksOf is withSinks for one crawl of a node of all crawls. Such a node does not reopen a crawl that is done.
func (a *allRunner) withSinksOf(err error, crawl string, log *slog.Logger) error {
	u, is := errors.AsType[*session.IncompleteSending](err)
	if _, place := errors.AsType[*session.IncompleteUpload](err); !is || place {
		return err
	}
	err = u.SendErr
	if rest := follow.ResumeCommands(err, filepath.Join(a.nodeRunner.out, crawl)); rest != "" {
		err = advice.With(err, "to send the rest, run: "+rest)
	}
	if u.RunErr != nil {
		log.Warn(err.Error(), "do", advice.Of(err))
		return u.RunErr
	}
	return err
}

func sinksOf(c *session.Session) []stats.Sink {
	if c.Job.Sinks == nil {
		return nil
	}
	return c.Job.Sinks()
}

// Command kumo is a web crawler. See the root package's documentation for the house, and kumo --help for the verbs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/job"
	"kumo/internal/archive/upload"
	"kumo/internal/base/advice"
	"kumo/internal/base/vfs"
	"kumo/internal/batch"
	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
)

// Exit codes. They are documented in the root command's help.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNothing     = 3
	exitLimit       = 4
	exitDiskFull    = 5
	exitUnreached   = 6
	exitBehind      = 7
	exitInterrupted = 130
)

const rootLong = `kumo crawls the web and keeps what it finds as WARC.

  kumo crawl https://example.com/     one site, politely, into crawls/example.com
  kumo demo                           see it work on a made-up web, offline
  kumo cluster demo                   the same with several nodes, of which one dies

Exit codes:
  0    done: nothing waits, but for what was given up with a few hosts; a node also when it has left, or the crawl was stopped
  1    failed
  2    wrong usage, or settings that do not go together
  3    done, but nothing could be fetched; or the proxy could not be reached
  4    a limit was reached; the rest waits for the same command with a higher one
  5    the disk is full; the rest waits for the same command, with room made
  6    hosts were given up in numbers (more than a tenth of those that had answered, or more than half of all), or the crawl was cut
       off from the web for longer than --outage-wait; the rest waits for the same command
  7    the crawl is done, but a sink (--sink) or its place (-o s3://...) has not all of it; nothing is lost, and the same command
       brings the rest there
  130  interrupted; the rest waits for the same command again

Each flag of each command can be set in the environment, too: --max-rate as KUMO_MAX_RATE, one that is repeated with a value a line.
What is typed wins over it, it wins over a --config file and over what a crawl was begun with.`

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	ctx, stop := interruptible()
	defer stop()
	root := &cobra.Command{Use: "kumo", Short: "A distributed web crawler", Long: rootLong, Version: job.Version,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd) }}
	root.SetFlagErrorFunc(flagError)
	addVerbs(root)
	eachCommand(root, completeChoices)
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // else it takes an unknown shell for a call for help
			c.Args, c.RunE = cobra.ArbitraryArgs, noVerb
		}
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !isReported(err) {
		err = withSuggestion(err, args)
		fmt.Fprintf(os.Stderr, "kumo: %v\n", err)
		if vfs.IsFull(err) && !errors.Is(err, upload.ErrIncomplete) {
			fmt.Fprintln(os.Stderr, "the disk is full: make room and give the same command again")
		}
		if do := advice.Of(err); do != "" {
			fmt.Fprintln(os.Stderr, do)
		}
		if isUsage(err) {
			fmt.Fprintf(os.Stderr, "see: %s --help\n", cmd.CommandPath())
		}
	}
	return exitCode(err)
}

// addVerbs gives the root command its verbs, by what they are for.
func addVerbs(root *cobra.Command) {
	group := func(id, title string, verbs ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: id, Title: title})
		for _, v := range verbs {
			v.GroupID = id
			root.AddCommand(v)
		}
	}
	group("one", "Crawl on one machine:", crawlCommand(), mirrorCommand(), planCommand(), demoCommand())
	group("several", "Crawl on several machines:", nodeCommand(), startCommand(), balanceCommand(), secretCommand(),
		clusterCommand())
	group("steer", "Follow and steer a crawl that runs, on one machine or several:", statusCommand(), addCommand(),
		setCommand(), pauseCommand(), resumeCommand(), blockCommand(), stopCommand())
	group("batch", "Crawl by layers, day by day:", batchCommand())
	group("look", "Look into a crawl:", explainCommand(), hostsCommand(), queueCommand(), seenCommand(), topCommand(),
		linksCommand(), trapsCommand(), searchCommand(), verifyCommand(), serveCommand(), openCommand(), mcpCommand())
	group("other", "Make other forms of a crawl:", exportCommand(), indexCommand())
	group("keep", "Keep a crawl safe:", snapshotCommand(), repairCommand())
	group("try", "Try out:", checkCommand(), doctorCommand(), synthwebCommand(), simCommand())
	group("self", "kumo itself:", manCommand(), versionCommand())
	root.SetUsageTemplate(helpTemplate(root))
	root.SetHelpCommandGroupID("self")
	root.SetCompletionCommandGroupID("self")
}

// repeatedSignal is how long after the first signal another one is taken for the same: some programs signal a process and
// its group.
const repeatedSignal = 500 * time.Millisecond

// interruptible returns a context that ends with the first SIGINT, SIGTERM or SIGHUP; the second ends the process at
// once.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		cancel()
		for first := time.Now(); ; {
			<-signals
			if time.Since(first) > repeatedSignal {
				fmt.Fprintln(os.Stderr, "kumo: ended at once by a second signal; the same command goes on")
				os.Exit(exitInterrupted)
			}
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}

// A usage is an error in how the command was called.
type usage struct{ err error }

func (u *usage) Error() string { return u.err.Error() }
func (u *usage) Unwrap() error { return u.err }

// withSuggestion adds to an error what was meant by who left the command out.
func withSuggestion(err error, args []string) error {
	if len(args) == 0 || !strings.HasPrefix(err.Error(), "unknown command") || !strings.Contains(args[0], "://") {
		return err
	}
	return usagef("%q is no command; did you mean kumo crawl %s?", args[0], strings.Join(args, " "))
}

func usagef(format string, args ...any) error { return &usage{fmt.Errorf(format, args...)} }

var (
	errNothing = errors.New("nothing could be fetched")
	errGaveUp  = errors.New("given up: the same command tries them again")
)

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitDone
	case isUsage(err):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, policy.ErrLimit):
		return exitLimit
	case vfs.IsFull(err) && !errors.Is(err, upload.ErrIncomplete): // a place may be full, too
		return exitDiskFull
	case errors.Is(err, errNothing), errors.Is(err, batch.ErrNothingFetched), errors.Is(err, crawl.ErrNoProxy):
		return exitNothing
	case errors.Is(err, errGaveUp), errors.Is(err, crawl.ErrOffline):
		return exitUnreached
	case isSinkBehind(err), errors.Is(err, upload.ErrIncomplete), errors.Is(err, upload.ErrInUse):
		return exitBehind
	}
	return exitFailed
}

// isReported reports whether an error needs no word, because the report has said it.
func isReported(err error) bool {
	if errors.Is(err, upload.ErrIncomplete) || errors.Is(err, upload.ErrInUse) {
		return false
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, policy.ErrLimit)
}

func isUsage(err error) bool {
	_, called := errors.AsType[*usage](err)
	return called || advice.IsUsage(err) || errors.Is(err, job.ErrNoSeeds) || isCobraUsage(err)
}

// isCobraUsage recognises what cobra says of a verb or argument that it does not know.
func isCobraUsage(err error) bool {
	msg := err.Error()
	return strings.HasPrefix(msg, "unknown command") || strings.HasPrefix(msg, "accepts ") ||
		strings.HasPrefix(msg, "unknown flag")
}

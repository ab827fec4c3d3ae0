package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
	"kumo/internal/lab/trapweb"
)

func TestMain(m *testing.M) {
	testscript.Main(testmain.M{M: m, PerProcessor: 2}, map[string]func(){"kumo": main, natsProgram: runNATS})
}

// TestStories runs testdata/*.txt. Besides kumo they may use
//
//	web [messy] HOSTS PAGES   serves a web that keeps score; sets $SEED, the first URL, $DNS and $PORT
//	site FOLDER [NAME]        serves a folder's files as a site at $SITE, or $NAME; ?header=NAME:VALUE adds a field to
//	                          an answer, Location makes it a redirect, and ?status=CODE an error; while there is a
//	                          file FILE.hold, requests for FILE wait
//	until PATTERN kumo ARGS.. runs kumo repeatedly until its output matches
//	score KEY VALUE           checks a field of the servers' score
//	addresses NAME...         sets each to an address of this machine whose port, and the next one, are free
//	s3 [HOW]                  runs a server of S3's protocol, and sets S3 to the options of s3://kumo-test on it; HOW is
//	                          its new state: up, down (no response), or an HTTP status for all responses
//	nats NAME                 runs a NATS server with JetStream, and sets NAME to its URL
//	foreign JOIN CRAWL WHAT   writes an entry of another version or of a wrong clock into a cluster's registry; see
//	                          foreignCmd
//	exit CODE kumo ARGS...    runs kumo and checks its exit code
//	lines FILE N              checks how many lines a file has; N may be 'score:KEY'
//	cut FILE N                takes N bytes off a file's end
//	append FILE TEXT          adds text to a file
//	move PATTERN FOLDER       moves files
//	ask [-token] FILE PATH REGEX    requests a page below the URL in a file, with its token or without
//	probe ADDR/PATH CODE REGEX requests a page until it has the status and the text, for 20 s
//	glob PATTERN REGEX        checks the text of the one file whose name matches
//
// and the conditions [long], which holds in .ci/long, and [slow], which holds where slow tests run.
func TestStories(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("LF", "\n") // a line of a story cannot have one
			examples, err := filepath.Abs("../../examples")
			e.Setenv("EXAMPLES", examples)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"web": webCmd, "traps": trapsCmd, "site": siteCmd, "s3": s3Cmd,
			"club": clubCmd, "score": scoreCmd, "until": untilCmd, "exit": exitCmd, "lines": linesCmd,
			"addresses": addressesCmd, "foreign": foreignCmd, "nats": natsCmd, "cut": cutCmd, "append": appendCmd,
			"move": moveCmd, "glob": globCmd, "ask": askCmd,
			"probe": probeCmd,
		},
		Condition: condition,
	})
}

// condition evaluates [long], whether .ci/long runs the story, and [slow], whether slow stories run: see testmain.Slow.
func condition(name string) (bool, error) {
	switch name {
	case "long":
		return testmain.Rounds(0, 1) > 0, nil
	case "slow":
		return testmain.IsSlow(), nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// trapsCmd serves a web of traps with a number of honest pages: TRAPS is its host and port.
func trapsCmd(ts *testscript.TestScript, _ bool, args []string) {
	pages, err := strconv.Atoi(args[0])
	ts.Check(err)
	s := httptest.NewServer(trapweb.New(1, pages))
	ts.Defer(s.Close)
	ts.Setenv("TRAPS", "www."+trapweb.Domain+s.URL[strings.LastIndexByte(s.URL, ':'):])
}

func webCmd(ts *testscript.TestScript, _ bool, args []string) {
	make := synthweb.Clean
	if args[0] == "messy" {
		make, args = synthweb.Messy, args[1:]
	}
	hosts, err := strconv.Atoi(args[0])
	ts.Check(err)
	pages, err := strconv.Atoi(args[1])
	ts.Check(err)
	cfg := make(1, hosts, pages)
	cfg.MedianSize = 3 << 10
	s, err := synthweb.Serve(contextOf(ts), synthweb.New(cfg), synthweb.ServeOptions{DNS: true})
	ts.Check(err)
	ts.Defer(func() { s.Close() })
	ts.Setenv("SEED", s.SeedURLs()[0])
	ts.Setenv("DNS", s.DNS())
	ts.Setenv("PORT", strconv.Itoa(s.Port()))
	servers.Store(ts.Getenv("WORK"), s)
}

func siteCmd(ts *testscript.TestScript, _ bool, args []string) {
	dir, name := ts.MkAbs(args[0]), "SITE"
	if len(args) > 1 {
		name = args[1]
	}
	files := http.FileServer(http.Dir(dir))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hold := filepath.Join(dir, filepath.FromSlash(r.URL.Path)+".hold")
		for _, err := os.Stat(hold); err == nil; _, err = os.Stat(hold) { // until the story removes it
			select {
			case <-r.Context().Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
		for _, field := range r.URL.Query()["header"] {
			name, value, _ := strings.Cut(field, ":")
			w.Header().Set(name, value)
		}
		if w.Header().Get("Location") != "" {
			w.WriteHeader(http.StatusFound)
			return
		}
		if status, err := strconv.Atoi(r.FormValue("status")); err == nil {
			w.WriteHeader(status)
			return
		}
		files.ServeHTTP(w, r)
	}))
	ts.Defer(s.Close)
	ts.Setenv(name, s.URL)
	if name == "SITE" {
		ts.Setenv("HOST", strings.TrimPrefix(s.URL, "http://"))
	}
}

func probeCmd(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile(args[2])
	client := &http.Client{Timeout: 5 * time.Second}
	answer := ""
	for begin := time.Now(); time.Since(begin) < 20*time.Second; time.Sleep(50 * time.Millisecond) {
		resp, err := client.Get("http://" + args[0])
		if err != nil {
			answer = err.Error()
			continue
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		ts.Check(err)
		if answer = fmt.Sprintf("%d %s", resp.StatusCode, text); strconv.Itoa(resp.StatusCode) == args[1] &&
			want.Match(text) {
			return
		}
	}
	ts.Fatalf("%s: want %s %s, but\n%s", args[0], args[1], args[2], answer)
}

func globCmd(ts *testscript.TestScript, not bool, args []string) {
	names, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(names) != 1 {
		ts.Fatalf("%s is %d files", args[0], len(names))
	}
	text := ts.ReadFile(names[0])
	if regexp.MustCompile(args[1]).MatchString(text) == not {
		ts.Fatalf("%s has\n%s", names[0], text)
	}
}

func untilCmd(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile("(?m)" + args[0])
	var out string
	const pause = 200 * time.Millisecond // the awaited process needs the processor, too
	for begin := time.Now(); time.Since(begin) < 20*time.Second; time.Sleep(pause) {
		err := ts.Exec(args[1], args[2:]...)
		if out = ts.ReadFile("stdout"); err == nil && want.MatchString(out) {
			return
		}
	}
	ts.Fatalf("no match for %s in 20s, but\n%s", args[0], out)
}

func scoreOf(ts *testscript.TestScript, key string) string {
	data, err := json.Marshal(serverOf(ts).Score())
	ts.Check(err)
	var fields map[string]any
	ts.Check(json.Unmarshal(data, &fields))
	v, ok := fields[key]
	if !ok {
		ts.Fatalf("the score has no field %q", key)
	}
	if m, ok := v.(map[string]any); ok {
		v = m["value"]
	}
	return fmt.Sprint(v)
}

func scoreCmd(ts *testscript.TestScript, _ bool, args []string) {
	if got := scoreOf(ts, args[0]); got != args[1] {
		ts.Fatalf("%s is %s, want %s; the servers saw:\n%s", args[0], got, args[1], serverOf(ts).Score())
	}
}

func exitCmd(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if ee, ok := errors.AsType[*exec.ExitError](err); ok {
		code = ee.ExitCode()
	} else {
		ts.Check(err)
	}
	if want := args[0]; strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

func linesCmd(ts *testscript.TestScript, _ bool, args []string) {
	want := args[1]
	if key, ok := strings.CutPrefix(want, "score:"); ok {
		want = scoreOf(ts, key)
	}
	if got := strconv.Itoa(strings.Count(ts.ReadFile(args[0]), "\n")); got != want {
		ts.Fatalf("%s has %s lines, want %s", args[0], got, want)
	}
}

// wantVerified checks that a crawl's files agree, if it wrote any.
func wantVerified(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.Command(kumoProgram(t), "verify", "-q", dir)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() != exitUsage {
		t.Fatalf("kumo verify: %v\n%s", err, out)
	}
}

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"kumo/internal/lab/synthweb"
)

type score = synthweb.Score

// A web is a synthetic web in its own process.
type web struct {
	cmd    *exec.Cmd
	flags  []string // for kumo crawl
	seed   string
	client *http.Client // without keep-alive, so that all open connections are the crawler's
}

// startWeb starts kumo synthweb and returns when it is ready.
func startWeb(ctx context.Context, kumo string, args []string) (*web, error) {
	w := &web{cmd: exec.CommandContext(ctx, kumo, args...), client: newClient()}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.cmd.Stderr = os.Stderr
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "kumo crawl "); ok {
			fields := strings.Fields(rest)
			w.flags, w.seed = fields[:len(fields)-1], fields[len(fields)-1]
			return w, nil
		}
	}
	w.stop()
	return nil, errors.Join(fmt.Errorf("kumo %s printed no command to crawl it", strings.Join(args, " ")), lines.Err())
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}

// stop kills the server, which has no state to save.
func (w *web) stop() {
	_ = w.cmd.Process.Kill() // it may have ended already
	_ = w.cmd.Wait()         // the error is that it was killed
}

// score returns the servers' view of the crawl. The first host is at 127.77.0.1, also if hosts have names.
func (w *web) score(ctx context.Context) (s score, err error) {
	u, err := url.Parse(w.seed)
	if err != nil {
		return s, err
	}
	u.Host, u.Path = firstAddress+":"+u.Port(), "/.synth/score"
	req, err := http.NewRequestWithContext(ctx, "GET", u.String(), nil)
	if err != nil {
		return s, err
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return s, fmt.Errorf("get the score: %w", err)
	}
	defer resp.Body.Close()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

const firstAddress = "127.77.0.1"

// cpu returns the server's CPU time so far; 0 on systems without /proc.
func (w *web) cpu() time.Duration {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(w.cmd.Process.Pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the command's name may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	ticks := 0
	for _, field := range fields[11:13] { // utime and stime, in hundredths
		n, _ := strconv.Atoi(field)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

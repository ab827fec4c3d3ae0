package hadoop

import (
	"regexp"
	"strconv"
	"strings"
)

// A status is the state of a job, parsed from the output of Hadoop's commands.
type status struct {
	id                    string // job_1795402650629_0001
	tag                   string // tag of its application
	maps                  int
	mapShare, reduceShare float64 // completed shares of the work, 0 to 1
	begun                 bool    // YARN has given it a container
	ended, succeeded      bool
	failedMaps            int // failed attempts, of a job that has ended
	failedReduces         int
	failures              int    // failed attempts seen so far
	why                   string // last failure, or why the job failed
	diagnosing            bool   // the next line contains the reason
}

var (
	jobLine       = regexp.MustCompile(`Running job: (job_\d+_\d+)`)
	splitsLine    = regexp.MustCompile(`number of splits:\s*(\d+)`)
	shareLine     = regexp.MustCompile(`map (\d+)% reduce (\d+)%`)
	endLine       = regexp.MustCompile(`Job (job_\d+_\d+) (completed successfully|failed with state (\w+) due to: ?(.*))`)
	attemptLine   = regexp.MustCompile(`Task Id : (attempt_\S+), Status : FAILED`)
	stateLine     = regexp.MustCompile(`^Job state: (\w+)`)
	mapsLine      = regexp.MustCompile(`^Number of maps: (\d+)`)
	doneLine      = regexp.MustCompile(`^(map|reduce)\(\) completion: ([\d.]+)`)
	reasonLine    = regexp.MustCompile(`^reason for failure: ?(.*)`)
	failedLine    = regexp.MustCompile(`^\s*Failed (map|reduce) tasks=(\d+)`)
	noApplication = regexp.MustCompile(`ERROR.*streaming\.StreamJob: (.*)|^Exception in thread "main" (.*)`)
)

// read parses a line of "hadoop jar" or "mapred job -status". It reports whether the line contained anything relevant.
func (s *status) read(line string) bool {
	if s.diagnosing {
		s.diagnosing = false
		if text := strings.TrimSpace(line); text != "" {
			s.why = text
		}
	}
	if m := jobLine.FindStringSubmatch(line); m != nil {
		s.id = m[1]
	} else if m := splitsLine.FindStringSubmatch(line); m != nil {
		s.maps, _ = strconv.Atoi(m[1])
	} else if m := mapsLine.FindStringSubmatch(line); m != nil {
		s.maps, _ = strconv.Atoi(m[1])
	} else if m := shareLine.FindStringSubmatch(line); m != nil {
		s.begun, s.mapShare, s.reduceShare = true, percent(m[1]), percent(m[2])
	} else if m := doneLine.FindStringSubmatch(line); m != nil {
		share, _ := strconv.ParseFloat(m[2], 64)
		if m[1] == "map" {
			s.mapShare = share
		} else {
			s.reduceShare = share
		}
	} else if m := endLine.FindStringSubmatch(line); m != nil {
		s.ended, s.succeeded = true, m[3] == ""
		if s.why == "" {
			s.why = m[4]
		}
	} else if m := stateLine.FindStringSubmatch(line); m != nil {
		s.succeeded = m[1] == "SUCCEEDED"
		s.ended = s.succeeded || m[1] == "FAILED" || m[1] == "KILLED"
	} else if m := reasonLine.FindStringSubmatch(line); m != nil && s.ended && m[1] != "" {
		s.why = m[1]
	} else if attemptLine.MatchString(line) {
		s.failures++
		s.diagnosing = true
	} else if m := failedLine.FindStringSubmatch(line); m != nil {
		n, _ := strconv.Atoi(m[2])
		if m[1] == "map" {
			s.failedMaps = n
		} else {
			s.failedReduces = n
		}
	} else if m := noApplication.FindStringSubmatch(line); m != nil && s.id == "" {
		s.why = m[1] + m[2]
	} else {
		return false
	}
	return true
}

func percent(text string) float64 {
	n, _ := strconv.Atoi(text)
	return float64(n) / 100
}

// failed returns the number of failed attempts.
func (s *status) failed() int { return max(s.failures, s.failedMaps+s.failedReduces) }

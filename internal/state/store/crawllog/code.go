package crawllog

import "kumo/internal/base/page"

// codes are Heritrix's fetch status codes. Two have a slightly different meaning there: -5002 is a visit that the
// operator's rules blocked, and -8 a URL dropped because its host failed too often.
var codes = map[page.Failure]int{
	page.DNS:         -1,
	page.Connect:     -2,
	page.Refused:     -2,
	page.TLS:         -2,
	page.Proxy:       -2,
	page.Reset:       -3,
	page.Malformed:   -3,
	page.Timeout:     -4,
	page.Internal:    -5,
	page.Unreachable: -8,
	page.NoRobots:    -61,
	page.Private:     -5002,
}

// Code returns the status in crawl.log of a failure: -1 no address, -2 no connection, -3 connection or response broke,
// -4 timeout, -5 bug in kumo, -8 host abandoned, -5002 forbidden address; 0 for None. Heritrix's codes for URLs that
// are not visited (-61, -5000, -5003, -9998) do not occur. Such URLs are in skipped.jsonl.
func Code(f page.Failure) int {
	if f == page.None {
		return 0
	}
	if code, ok := codes[f]; ok {
		return code
	}
	return codes[page.Internal]
}

// status returns the status of the response, or the code of the failure.
func status(rec *page.Record) int64 {
	if rec.Response != nil && rec.Response.Status != 0 && rec.Failure == page.None {
		return int64(rec.Response.Status)
	}
	if rec.Failure == page.None && rec.Response != nil {
		return int64(Code(page.Malformed)) // bytes but no status line
	}
	return int64(Code(rec.Failure))
}

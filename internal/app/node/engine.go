package node

import (
	"context"

	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member/driver"
)

// An Engine is what a node needs of a crawl.Engine that runs. Its methods may be called by many goroutines at once.
type Engine interface {
	driver.Engine
	// AddSeeds takes seeds in: all into scope, and those to be fetched of whose hosts take is true. It returns when that
	// is durable.
	AddSeeds(ctx context.Context, seeds []weburl.URL, take func(host string) bool) error
	AddRoot(u weburl.URL) error // takes in scope what a seed has redirected to
	Pause(on bool)
	Interrupt()  // breaks off all requests under way
	Share(n int) // so many nodes crawl
	Finish()     // ends the run once nothing waits
}

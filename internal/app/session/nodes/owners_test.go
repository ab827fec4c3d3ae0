package nodes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
)

// The owners of hosts can be queried during and after the crawl, from a control unit's log or by a hash.
func TestOwnersOfACluster(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"hub", "shard"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			web := jobtest.Serve(t, synthweb.Clean(5, 10, 100))
			c := newCluster(t, web)
			c.strategy = how
			if _, err := c.control.Owners(t.Context(), admin.HostQuery{}); err == nil {
				t.Error("a crawl that nobody has begun has owners")
			}
			a, b := c.start("a"), c.start("b")
			c.members(2)
			c.slowAfter(80)
			c.begin()
			if how == "hub" {
				c.eventually("one of them is the control unit", func() bool {
					all, err := c.control.Cluster(t.Context(), "test")
					return err == nil && (all.Control == "a" || all.Control == "b") && all.Nodes[0].Facts != nil
				})
			}
			c.eventually("most is fetched", func() bool { return web.Requests() > 80 })
			host := func(i int) string { return fmt.Sprintf("h%04d.synth.test:%d", i, web.Port()) }
			if how == "shard" {
				if _, err := c.control.Owners(t.Context(), admin.HostQuery{}); err == nil {
					t.Error("a hash has a list of hosts")
				}
				all, err := c.control.Owners(t.Context(), admin.HostQuery{Names: []string{host(0), host(1)}})
				if err != nil || len(all.Hosts) != 2 || all.Hosts[1].State != inspect.HostHashed {
					t.Fatalf("%+v, %v", all, err)
				}
				for _, o := range all.Hosts {
					n := a
					if o.Owner == "b" {
						n = b
					}
					if l := n.current.Load(); l == nil || !l.router.Ours(o.Host) {
						t.Errorf("%s is said to be %s's", o.Host, o.Owner)
					}
				}
			} else {
				c.eventually("all hosts have owners", func() bool {
					all, err := c.control.Owners(t.Context(), admin.HostQuery{})
					return err == nil && len(all.Hosts) == 10 && all.More == 0
				})
				all, err := c.control.Owners(t.Context(), admin.HostQuery{Names: []string{"synth.test", "nosuch.example"},
					Limit: 3})
				if err != nil || len(all.Hosts) != 3 || all.More != 7 || !slices.Equal(all.Missing, []string{"nosuch.example"}) ||
					all.By[0].Hosts == 0 {
					t.Errorf("%+v, %v", all, err)
				}
				if all, err = c.control.Owners(t.Context(), admin.HostQuery{Parked: true}); err != nil || len(all.Hosts) != 0 ||
					len(all.By) == 0 {
					t.Errorf("parked: %+v, %v", all, err)
				}
			}
			o, err := c.control.Owner(t.Context(), host(3), "", time.Minute)
			if err != nil || o == nil || o.Here || time.Since(o.Since) > time.Hour && how == "hub" {
				t.Fatalf("%+v, %v", o, err)
			}
			if again, err := c.control.Owner(t.Context(), host(3), o.Node, time.Minute); err != nil || !again.Here {
				t.Errorf("asked by its owner: %+v, %v", again, err)
			}
			if o, err := c.control.Owner(t.Context(), "nosuch.example", "", time.Minute); err != nil ||
				(o == nil) != (how == "hub") {
				t.Errorf("of a host that nobody knows: %+v, %v", o, err)
			}
			c.goOn()
			c.ends(nil, a, b)
		})
	}
}

package cookies

import (
	"fmt"
	"slices"
	"time"
)

// AppendHost appends the cookies that may be sent to a host, in the format of [Append], except private and expired
// ones. The cookies of the host itself come first, and those that do not fit into most bytes are omitted.
func (j *Jar) AppendHost(b []byte, host string, most int, now time.Time) []byte {
	before := len(b)
	for _, c := range j.AppendForHost(nil, host) {
		if c.expired(now) {
			continue
		}
		if longer := Append(b, &c); len(longer)-before <= most {
			b = longer
		}
	}
	return b
}

// ImportHost adds cookies that another node had for a host, in the format of AppendHost, and calls Config.OnChange. The
// data is not trusted: after an error, none are added.
//
// It ignores cookies with the name of a configured or private one that is sent to the same host. A cookie of a domain
// is sent to other hosts, too, which this node may be fetching. So it is also ignored if the jar has any cookie of its
// name for the domain, or for another host of it.
func (j *Jar) ImportHost(b []byte, host string, now time.Time) error {
	if j == nil {
		return nil
	}
	var all []Cookie
	for len(b) > 0 {
		c, rest, ok := Read(b)
		switch {
		case !ok:
			return fmt.Errorf("cookies for %s: invalid data", host)
		case !c.Covers(host):
			return fmt.Errorf("cookies for %s: one is for %s, which does not contain the host", host, c.Domain)
		}
		if c.limitTimes(now); !c.expired(now) {
			all = append(all, c)
		}
		b = rest
	}
	if j.cfg.Private != nil && j.cfg.Private(host) {
		return nil
	}
	all = slices.DeleteFunc(all, func(c Cookie) bool {
		return j.cfg.Configured != nil && j.cfg.Configured(&c) || j.cfg.PrivateFor != nil && j.cfg.PrivateFor(&c)
	})
	all = j.withoutCollisions(all, host, now)
	for i := range all {
		c := &all[i]
		if j.set(c, nil) && j.cfg.OnChange != nil {
			j.cfg.OnChange(c)
		}
	}
	return nil
}

// withoutCollisions removes the cookies for a host that must not be added beside those of the jar.
func (j *Jar) withoutCollisions(all []Cookie, host string, now time.Time) []Cookie {
	within := host // the widest domain of the cookies
	for i := range all {
		if len(all[i].Domain) < len(within) {
			within = all[i].Domain
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	stored := map[string][]*Cookie{} // by name: those that are sent to the host, or to others of that domain
	for name, d := range j.domains {
		if !covers(name, host) && !covers(within, name) {
			continue
		}
		for i := range d.cookies {
			if k := &d.cookies[i].Cookie; !k.expired(now) {
				stored[k.Name] = append(stored[k.Name], k)
			}
		}
	}
	return slices.DeleteFunc(all, func(c Cookie) bool {
		return slices.ContainsFunc(stored[c.Name], func(k *Cookie) bool {
			return k.Overlaps(&c) && (k.Private || !c.HostOnly && !(k.HostOnly && k.Domain == host))
		})
	})
}

// Overlaps reports whether there is a host to which both cookies may be sent.
func (c *Cookie) Overlaps(d *Cookie) bool { return c.Covers(d.Domain) || d.Covers(c.Domain) }

// limitTimes limits the times to those of a cookie that a server could have set by now.
func (c *Cookie) limitTimes(now time.Time) {
	if c.Set.After(now) {
		c.Set = now
	}
	if c.Created.After(c.Set) {
		c.Created = c.Set
	}
	if latest := now.Add(maxLife); c.Expires.After(latest) {
		c.Expires = latest
	}
}

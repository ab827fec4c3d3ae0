package experiments

import (
	"strings"
	"time"

	"kumo/internal/cluster/strategy"
)

// This file has the paper's algorithm (its figure 7) as two strategies: a node's and the control unit's. As printed, a
// claim is never granted and locks the owner out of its own host; here the control unit compares owner and sender and
// answers each claim. Also as printed, each node that fails to reach a URL sends it to all others, so that a URL that
// none reaches multiplies with n nodes without end. Here a node never tries a host twice, in line with the paper's
// section 3.1.

// A hostRequest is the paper's message. Its kind combines direction and flag.
type hostRequest struct {
	kind byte
	host string
	node strategy.Node // the owner
}

// Kinds of host requests.
const (
	reqClaim  byte = 'c' // to the control unit, addOrWait: the host was reached
	reqFailed byte = 'f' // to the control unit, not addOrWait: the host was not reached
	reqTry    byte = 't' // to a node, add: please crawl this host
	reqOwner  byte = 'o' // to a node, not add, or the answer to its claim: the owner
)

func (r hostRequest) to(n strategy.Node) strategy.Send {
	return strategy.Send{To: n, Data: []byte(string(r.kind) + r.host + "\n" + string(r.node))}
}

func readRequest(data []byte) hostRequest {
	host, node, _ := strings.Cut(string(data[1:]), "\n")
	return hostRequest{data[0], host, strategy.Node(node)}
}

// knownOwners is a view. Strategies embed it for their View method.
type knownOwners map[string]strategy.Node

func (k knownOwners) Owner(host string) (strategy.Node, strategy.State) {
	if owner := k[host]; owner != "" {
		return owner, strategy.Owned
	}
	return "", strategy.Unknown
}

func (k knownOwners) View() strategy.View { return k }

// A paperNode is a crawl node. Its visitedURLs are the hosts that it owns or claims, othervisited those of others, and
// failedhost those that have no owner as far as it knows.
type paperNode struct {
	knownOwners
	self, control strategy.Node
	timeout       time.Duration
}

func (p *paperNode) Step(_ time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	for _, e := range in {
		switch e := e.(type) {
		case strategy.OwnersNeeded:
			for _, h := range e.Hosts {
				out = p.try(h, out)
			}
		case strategy.Message:
			if r := readRequest(e.Data); r.kind == reqTry {
				out = p.try(r.host, out)
			} else {
				p.knownOwners[r.host] = r.node
			}
		case strategy.ProbeResult:
			out = p.reached(e, out)
		}
	}
	return append(out, strategy.ViewChanged{})
}

// try adds an unknown host to those to fetch, provisionally as the node's own.
func (p *paperNode) try(host string, out []strategy.Action) []strategy.Action {
	if _, known := p.knownOwners[host]; known {
		return out
	}
	p.knownOwners[host] = p.self
	return append(out, strategy.Probe{Host: host, Timeout: p.timeout})
}

func (p *paperNode) reached(e strategy.ProbeResult, out []strategy.Action) []strategy.Action {
	kind := reqClaim
	if !e.OK {
		kind = reqFailed
		p.knownOwners[e.Host] = ""
	}
	return append(out, hostRequest{kind: kind, host: e.Host}.to(p.control))
}

// A paperControl is the control unit with its nodeshostmap.
type paperControl struct {
	knownOwners
	nodes []strategy.Node
}

func (p *paperControl) Step(_ time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	for _, e := range in {
		if m, ok := e.(strategy.Message); ok {
			out = p.receive(m.From, readRequest(m.Data), out)
		}
	}
	return out
}

func (p *paperControl) receive(from strategy.Node, r hostRequest, out []strategy.Action) []strategy.Action {
	owner := p.knownOwners[r.host]
	if owner == "" && r.kind == reqFailed {
		for _, n := range p.nodes {
			if n != from {
				out = append(out, hostRequest{kind: reqTry, host: r.host}.to(n))
			}
		}
		return out
	}
	if owner == "" {
		owner = from
		p.knownOwners[r.host] = from
	}
	return append(out, hostRequest{reqOwner, r.host, owner}.to(from))
}

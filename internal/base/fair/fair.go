// Package fair divides slots and a rate among users with weights. The others may use what one user does not.
package fair

import (
	"context"
	"math"
	"sync"
	"time"
)

// A Pool divides slots and a rate of actions, in actions per second, among its users. Its methods are safe for
// concurrent use.
type Pool struct {
	slots int           // 0: unlimited
	every time.Duration // between two actions; 0: unlimited
	burst time.Duration // unused time that can be caught up

	mu    sync.Mutex // guards the fields below, and those of users
	users []*User
	used  int
	next  time.Time // when the next action is permitted
	timer *time.Timer
	pass  float64 // of the last action
}

// A User of a pool.
type User struct {
	pool   *Pool
	weight float64
	used   int             // slots
	queue  []chan struct{} // waits for slots

	pass    float64         // actions so far, divided by the weight; the least goes first
	actions []chan struct{} // waits for actions
}

// NewPool returns a pool of slots and of actions a second; 0 is unlimited.
func NewPool(slots int, perSecond float64) *Pool {
	p := &Pool{slots: slots}
	if perSecond > 0 {
		p.every = time.Duration(float64(time.Second) / perSecond)
		p.burst = p.every * time.Duration(max(1, math.Ceil(perSecond/10)))
	}
	return p
}

// Add adds a user.
func (p *Pool) Add(weight int) *User {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := &User{pool: p, weight: float64(max(weight, 1)), pass: p.pass}
	p.users = append(p.users, u)
	return u
}

// Remove removes the user, which holds no slots.
func (u *User) Remove() {
	p := u.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.users {
		if other == u {
			p.users = append(p.users[:i], p.users[i+1:]...)
			return
		}
	}
}

// SetWeight changes the user's weight.
func (u *User) SetWeight(weight int) {
	u.pool.mu.Lock()
	defer u.pool.mu.Unlock()
	u.weight = float64(max(weight, 1))
}

// AcquireSlot waits for a slot. Of users that wait, the one with the fewest slots for its weight goes first. It returns
// false if ctx ends, or end is closed, before.
func (u *User) AcquireSlot(ctx context.Context, end <-chan struct{}) bool {
	if ctx.Err() != nil {
		return false
	}
	p := u.pool
	p.mu.Lock()
	if p.slots == 0 || p.used < p.slots && !p.isWanted() {
		p.used++
		u.used++
		p.mu.Unlock()
		return true
	}
	turn := make(chan struct{}, 1)
	u.queue = append(u.queue, turn)
	p.grantSlots()
	p.mu.Unlock()
	if awaitTurn(ctx, turn, end) {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if u.queue = remove(u.queue, turn); len(turn) > 0 { // granted meanwhile
		u.release()
	}
	return false
}

func (p *Pool) isWanted() bool {
	for _, u := range p.users {
		if len(u.queue) > 0 {
			return true
		}
	}
	return false
}

func remove(queue []chan struct{}, turn chan struct{}) []chan struct{} {
	for i, c := range queue {
		if c == turn {
			return append(queue[:i], queue[i+1:]...)
		}
	}
	return queue
}

// ReleaseSlot returns a slot.
func (u *User) ReleaseSlot() {
	u.pool.mu.Lock()
	defer u.pool.mu.Unlock()
	u.release()
}

func (u *User) release() {
	u.used--
	u.pool.used--
	u.pool.grantSlots()
}

func (p *Pool) grantSlots() {
	for p.used < p.slots {
		var first *User
		for _, u := range p.users {
			if len(u.queue) > 0 && (first == nil || float64(u.used)*first.weight < float64(first.used)*u.weight) {
				first = u
			}
		}
		if first == nil {
			return
		}
		p.used++
		first.used++
		first.queue[0] <- struct{}{}
		first.queue = first.queue[1:]
	}
}

// AwaitAction waits until the rate permits an action. Of users that wait, the one with the fewest actions for its
// weight goes first; time without actions does not count. It returns false if ctx ends, or end is closed, before.
func (u *User) AwaitAction(ctx context.Context, end <-chan struct{}) bool {
	p := u.pool
	if p.every == 0 {
		return true
	}
	p.mu.Lock()
	if len(u.actions) == 0 { // it was idle
		u.pass = max(u.pass, p.pass)
	}
	turn := make(chan struct{}, 1)
	u.actions = append(u.actions, turn)
	p.grantActions()
	p.mu.Unlock()
	if awaitTurn(ctx, turn, end) {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	u.actions = remove(u.actions, turn)
	return false
}

// grantActions permits the actions that are due, and sets the timer for the next one.
func (p *Pool) grantActions() {
	now := time.Now()
	if least := now.Add(-p.burst); p.next.Before(least) {
		p.next = least
	}
	for {
		var first *User
		for _, u := range p.users {
			if len(u.actions) > 0 && (first == nil || u.pass < first.pass) {
				first = u
			}
		}
		if first == nil {
			return
		}
		if wait := p.next.Sub(now); wait > 0 {
			p.wakeAfter(wait)
			return
		}
		p.next = p.next.Add(p.every)
		p.pass = first.pass
		first.pass += 1 / first.weight
		first.actions[0] <- struct{}{}
		first.actions = first.actions[1:]
	}
}

func (p *Pool) wakeAfter(wait time.Duration) {
	if p.timer == nil {
		p.timer = time.AfterFunc(wait, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.grantActions()
		})
		return
	}
	p.timer.Reset(wait)
}

// awaitTurn waits until a turn is granted. It returns false if ctx ends, or end is closed, before.
func awaitTurn(ctx context.Context, turn, end <-chan struct{}) bool {
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	case <-end:
	}
	return false
}

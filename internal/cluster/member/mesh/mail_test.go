package mesh

import (
	"testing"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// tail reads a message after its first byte.
func tail(data []byte) *varint.Reader { return &varint.Reader{Rest: data[1:]} }

func TestMailRepeatsAPacketUntilItIsAcknowledged(t *testing.T) {
	b := newBench(t, "a~1")
	m := newMail(b.core)
	var got []*reply
	for range 2 {
		m.post("a~1", item{kind: itemCheck, host: "h"}, func(_ strategy.Node, r *reply) { got = append(got, r) })
	}
	m.flush()
	first := out[Send](b)
	b.want("packets", len(first), 1)
	b.pass(retry)
	again := out[Send](b)
	b.want("the packet again", string(again[0].Data), string(first[0].Data))
	id := tail(first[0].Data).Uint()
	answer := encodeReplies(id, []reply{{code: replyYes}, {code: replyNo}})
	for range 2 { // the second is late
		if err := m.acknowledged("a~1", tail(answer)); err != nil {
			t.Error(err)
		}
	}
	b.want("replies", len(got), 2)
	b.want("the second", got[1].code, replyNo)
	b.want("busy", m.busy() || m.posted > 0, false)
}

func TestMailGivesUpASilentNode(t *testing.T) {
	b := newBench(t, "a~1")
	m := newMail(b.core)
	failed := 0
	for range 3 {
		m.post("a~1", item{kind: itemRecall, host: "h"}, func(_ strategy.Node, r *reply) {
			if r == nil {
				failed++
			}
		})
		m.flush()
	}
	b.want("packets within the window", len(out[Send](b)), window)
	b.pass(retry << maxTries)
	b.want("failed", failed, 3)
	b.want("doubted", len(out[Suspect](b)), 1)
	b.want("busy", m.busy() || m.posted > 0, false)
}

func TestMailAnswersWhenAllItemsAreDone(t *testing.T) {
	b := newBench(t, "a~1")
	m := newMail(b.core)
	var answers []func(reply)
	m.handlers = map[byte]itemHandler{
		itemDispatch: func(_ strategy.Node, _ item, answer func(reply)) { answers = append(answers, answer) },
		itemCheck:    func(_ strategy.Node, _ item, answer func(reply)) { answer(reply{code: replyIdle}) },
	}
	data := flightOf(7, item{kind: itemDispatch, host: "h"}, item{kind: itemCheck, host: "h"})
	for range 2 {
		if err := m.received("a~1", tail(data)); err != nil {
			t.Fatal(err)
		}
	}
	b.want("done", len(answers), 1)
	b.want("answers", len(out[Send](b)), 0)
	b.want("activity", b.core.activity, 1)
	answers[0](reply{code: replyYes})
	sent := out[Send](b)
	b.want("the answer", string(sent[0].Data), string(encodeReplies(7, []reply{{code: replyYes}, {code: replyIdle}})))
	b.want("executing", m.executing, 0)
	b.pass(time.Hour)
	_ = m.received("a~1", tail(data))
	b.want("done again after an hour", len(answers), 1)
}

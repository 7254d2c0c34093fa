package page

import (
	"strconv"

	"agentrun/web/gen"
	"agentrun/web/markup"
)

const (
	// maxTranscript is how much text of a transcript a page begins with, in bytes,
	// from the newest message on; the newest message is always there.
	maxTranscript = 1 << 20
	// maxFormatted is how much of it is read as Markdown at once, which takes
	// longer the worse it is meant.
	maxFormatted = 2 * markup.MaxMarkdown
)

// messageView is a message of a transcript as people read it.
type messageView struct {
	gen.Message
	// Formatted says that the text is shown as Markdown.
	Formatted bool
}

// Input says whether the agent was told the message, rather than told it.
func (m messageView) Input() bool { return m.Role == gen.MessageRoleInputToAgent }

// Anchor is the message's ID on the page.
func (m messageView) Anchor() string {
	if m.Input() {
		return "input-" + strconv.Itoa(m.Turn)
	}
	return "output-" + strconv.Itoa(m.Turn)
}

// messageViews returns the newest messages, or all, and how many are older.
func messageViews(messages []gen.Message, plain, all bool) (views []messageView, older int) {
	size := 0
	for older = len(messages); older > 0; older-- {
		if size += len(messages[older-1].Text); size > maxTranscript && !all && older < len(messages) {
			break
		}
	}
	views = make([]messageView, len(messages)-older)
	formatted := 0
	for i := len(views) - 1; i >= 0; i-- {
		m := messageView{Message: messages[older+i]}
		if !m.Input() && !plain {
			formatted += len(m.Text)
			m.Formatted = formatted <= maxFormatted
		}
		views[i] = m
	}
	return views, older
}

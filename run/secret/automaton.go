package secret

// automaton finds forms in a text after Aho and Corasick, in a time linear in
// the text's length however the forms overlap. It does not change once built.
type automaton struct {
	// nodes are a trie of the forms; the first one is the root. A form of
	// which nothing is shared with an earlier one lies in a row.
	nodes []node
	// first are the children of the root, zero where there is none. It has
	// many, and each failed step ends there.
	first   [256]int32
	matches []match // the first one means none
	filter  filter
}

// node stands for the beginning of a form. The numbers of nodes are int32, and
// zero, which is the root and nobody's child, means none.
type node struct {
	label          byte // the last byte of the beginning
	child, sibling int32
	depth          int32 // how long the beginning is
	fail           int32 // the longest end of it with which a form may go on
	match          int32 // the longest end of it that is a form
}

// match is a form that was found.
type match struct {
	length int
	marker string
}

// step returns the longest beginning of a form that the text ends with after
// one more byte.
func (a *automaton) step(state int32, b byte) int32 {
	for state != 0 {
		if next := a.child(state, b); next != 0 {
			return next
		}
		state = a.nodes[state].fail
	}
	return a.first[b]
}

func (a *automaton) child(state int32, b byte) int32 {
	next := a.nodes[state].child
	for next != 0 && a.nodes[next].label != b {
		next = a.nodes[next].sibling
	}
	return next
}

// open returns the node itself, or where no form goes on from it, as from the
// end of most, the longest end of what it stands for with which one does.
func (a *automaton) open(state int32) int32 {
	if state != 0 && a.nodes[state].child == 0 {
		return a.nodes[state].fail
	}
	return state
}

// newAutomaton returns the automaton of secrets. Of equal forms of theirs the
// first counts.
func newAutomaton(names, values []string) *automaton {
	all := make([][]string, len(values))
	size, least := 1, maxWindow
	for i, value := range values {
		all[i] = forms(value)
		for _, form := range all[i] {
			size += len(form)
			least = min(least, len(form))
		}
	}
	// Growing into it would take more than twice the space.
	a := &automaton{nodes: make([]node, 1, size), matches: make([]match, 1), filter: filter{window: least}}
	for i, name := range names {
		for _, form := range all[i] {
			a.add(form, "[secret "+name+"]")
			a.filter.add(form)
		}
	}
	a.link()
	return a
}

func (a *automaton) add(form, marker string) {
	var at int32
	for i := range len(form) {
		at = a.grow(at, form[i])
	}
	if a.nodes[at].match == 0 {
		a.nodes[at].match = int32(len(a.matches))
		a.matches = append(a.matches, match{length: len(form), marker: marker})
	}
}

// grow returns the child of a node, which it creates if need be.
func (a *automaton) grow(parent int32, label byte) int32 {
	known := a.first[label]
	if parent != 0 {
		known = a.child(parent, label)
	}
	if known != 0 {
		return known
	}
	next := int32(len(a.nodes))
	a.nodes = append(a.nodes, node{label: label, depth: a.nodes[parent].depth + 1})
	if parent == 0 {
		a.first[label] = next
	} else {
		a.nodes[next].sibling = a.nodes[parent].child
		a.nodes[parent].child = next
	}
	return next
}

// link ties each node to the longest ends of what it stands for. Those are
// shorter, so the nodes are taken in the order of their depth.
func (a *automaton) link() {
	queue := make([]int32, 0, len(a.nodes))
	for _, n := range a.first {
		if n != 0 {
			queue = append(queue, n)
		}
	}
	for i := 0; i < len(queue); i++ {
		parent := &a.nodes[queue[i]]
		for next := parent.child; next != 0; next = a.nodes[next].sibling {
			n := &a.nodes[next]
			n.fail = a.step(parent.fail, n.label)
			if n.match == 0 {
				n.match = a.nodes[n.fail].match
			}
			n.fail = a.open(n.fail)
			queue = append(queue, next)
		}
	}
}

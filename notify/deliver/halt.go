package deliver

import "sync"

// halted stops a batch once, and remembers the first reason.
type halted struct {
	once sync.Once
	done chan struct{}
	why  error
}

func (h *halted) stop(why error) {
	h.once.Do(func() {
		h.why = why
		close(h.done)
	})
}

package web

// MaxBudgets is the most addresses a Limiter remembers.
const MaxBudgets = maxBudgets

// Remembered is how many addresses it remembers now.
func (l *Limiter) Remembered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.budgets)
}

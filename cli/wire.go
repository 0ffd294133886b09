package cli

// as is what a pointer leads to, or nothing.
func as[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

package platform

// Stack is a root filesystem that apps run on, as the builder has it. Stacks are given when a process starts.
type Stack struct {
	Name        string
	Description string
	BuildImage  string
	RunImage    string
	Default     bool
}

// GUID names the stack, the same way in every process.
func (s Stack) GUID() string { return GUIDOf("stack", s.Name) }

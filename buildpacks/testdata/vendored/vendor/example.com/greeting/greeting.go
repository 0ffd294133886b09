// Package greeting stands for a dependency.
package greeting

// Text is what it has to say.
const Text = "greetings from a vendored module"

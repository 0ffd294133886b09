// Greeter says what a module that it depends on has to say.
package main

import "example.com/greeting"

func main() { println(greeting.Text) }

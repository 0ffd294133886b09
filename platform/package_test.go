package platform

import "testing"

func TestLine(t *testing.T) {
	for want, p := range map[string]DropletProcess{
		"./server":                        {Command: "./server"},
		"serve --fast":                    {Command: "serve --fast"},
		"./server --port $PORT":           {Command: "bash", Args: []string{"-c", "./server --port $PORT"}},
		"java -cp . 'it'\\''s $HOME' ''":  {Command: "java", Args: []string{"-cp", ".", "it's $HOME", ""}},
		"bash -c 'echo $1' name argument": {Command: "bash", Args: []string{"-c", "echo $1", "name", "argument"}},
	} {
		if got := p.Line(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCgroup finds the files of both versions, in a container and outside of one. The real ones are in TestOutOfMemory.
func TestCgroup(t *testing.T) {
	two := map[string]string{"memory.current": "4096\n", "memory.max": "max\n", "memory.events": "low 0\noom 3\noom_kill 2\noom_group_kill 1\n"}
	one := map[string]string{"memory.usage_in_bytes": "4096\n", "memory.limit_in_bytes": "9223372036854771712\n", "memory.oom_control": "oom_kill_disable 0\noom_kill 2\n"}
	for _, test := range []struct {
		name, mount, groups, dir string
		files                    map[string]string
	}{
		{"2 in a container", "1 2 0:3 / POINT ro,nosuid - cgroup2 cgroup rw", "0::/\n", "", two},
		{"2 outside", "1 2 0:3 / POINT rw shared:9 - cgroup2 cgroup2 rw", "0::/pods/a\n", "pods/a", two},
		{"1 in a container", "1 2 0:3 /pods/a POINT ro master:11 - cgroup cgroup rw,memory", "4:memory:/pods/a\n1:cpu:/\n", "", one},
		{"1 outside", "1 2 0:3 / POINT rw - cgroup cgroup rw,memory", "5:pids:/\n4:memory:/pods/a\n", "pods/a", one},
		{"not its own path", "1 2 0:3 /x POINT rw - cgroup cgroup rw,memory", "4:memory:/../../other\n", "", one},
	} {
		t.Run(test.name, func(t *testing.T) {
			point := t.TempDir()
			dir := filepath.Join(point, test.dir)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, text := range test.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			mounts := "0 0 0:1 / /proc rw - proc proc rw\nnonsense -\n" + strings.Replace(test.mount, "POINT", point, 1) + "\n"
			g := cgroupIn(mounts, test.groups)
			if m := g.memory(); g.dir != dir || m.Usage != 4096 || m.Limit != 0 || g.oomKills() != 2 {
				t.Errorf("got %+v with %+v and %d", g, m, g.oomKills())
			}
		})
	}
	if g := cgroupIn("", ""); g.oomKills() != 0 || g.memory() != (Memory{}) {
		t.Errorf("got %+v", g)
	}
}

package smoke_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestBetweenNodes reaches a pod of each node from the other.
func TestBetweenNodes(t *testing.T) {
	w := here(t)
	image := w.appImage()
	for _, node := range []string{"node-1", "node-2"} {
		w.apply("pinned.yaml", map[string]string{"Name": "on-" + node, "Namespace": w.Namespace, "Node": node, "Image": image, "Registry": w.Registry})
	}
	var pods [3]struct{ Status struct{ PodIP string } }
	for _, n := range []int{1, 2} {
		w.ready(fmt.Sprintf("on-node-%d", n))
		w.get(fmt.Sprintf("pod/on-node-%d", n), &pods[n])
	}
	for _, n := range []int{1, 2} {
		from, to := fmt.Sprintf("on-node-%d", n), fmt.Sprintf("on-node-%d", 3-n)
		got := w.kubectl("exec", from, "--container=client", "--", "curl", "-sS", "-m", "10", "http://"+pods[3-n].Status.PodIP+":8080")
		if strings.TrimSpace(got) != to+" on 8080" {
			t.Errorf("from %s, %s says %q", from, to, got)
		}
	}
}

// web runs a pod that listens on 8080 and 9191, with a host name of the apps domain for each.
func (w *world) web() {
	w.Helper()
	w.apply("web.yaml", map[string]any{"Namespace": w.Namespace, "Image": w.appImage(), "Hosts": map[string]int{"main": 8080, "sidecar": 9191}})
	w.kubectl("rollout", "status", "--timeout=90s", "statefulset/web")
}

func (w *world) url(host string) string {
	return fmt.Sprintf("http://%s-%s.apps.proa.localhost/", host, w.Namespace)
}

func TestTwoPortsThroughTheGateway(t *testing.T) {
	w := here(t)
	w.web()
	w.answers(w.url("main"), "web-0 on 8080")
	w.answers(w.url("sidecar"), "web-0 on 9191")
	w.answers(strings.Replace(w.url("sidecar"), "http:", "https:", 1), "web-0 on 9191")
	if got, err := w.ask(w.url("nobody")); err == nil {
		t.Errorf("a host without a route answers %q", got)
	}
}

func TestPodReachesServiceByName(t *testing.T) {
	w := here(t)
	w.web()
	w.client("client")
	for _, url := range []string{"web:8080", "web." + w.Namespace + ":9191", "web." + w.Namespace + ".svc.cluster.local:8080", "web-0.web:9191"} {
		got := w.kubectl("exec", "client", "--", "curl", "-sS", "-m", "10", "http://"+url)
		if !strings.HasPrefix(got, "web-0 on ") {
			t.Errorf("%s answers %q", url, got)
		}
	}
	if out, err := w.try("exec", "client", "--", "curl", "-sS", "-m", "10", "http://nobody:8080"); err == nil || !strings.Contains(out, "resolve") {
		t.Errorf("a name that is nobody's: %v %s", err, out)
	}
}

func (w *world) client(name string) {
	w.Helper()
	w.apply("client.yaml", map[string]string{"Name": name, "Namespace": w.Namespace, "Registry": w.Registry})
	w.ready(name)
}

// TestNetworkPolicy shows that policies are enforced, between pods of one node and towards the gateway.
func TestNetworkPolicy(t *testing.T) {
	w := here(t)
	w.web()
	w.client("friend")
	w.client("stranger")
	curl := func(pod string) error {
		out, err := w.try("exec", pod, "--", "curl", "-sS", "-m", "2", "http://web:8080")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	refused := func(pod string) func() error {
		return func() error {
			if curl(pod) == nil {
				return fmt.Errorf("%s still gets through", pod)
			}
			return nil
		}
	}
	// Only new connections are judged, and the gateway keeps those it has: so it is asked for a port it has not used.
	gateway := func() error { _, err := w.ask(w.url("sidecar")); return err }

	w.until(10*time.Second, "friend before any policy", func() error { return curl("friend") })
	w.until(10*time.Second, "stranger before any policy", func() error { return curl("stranger") })
	w.answers(w.url("main"), "web-0 on 8080")

	w.apply("deny.yaml", w)
	w.until(10*time.Second, "friend after deny", refused("friend"))
	if gateway() == nil {
		t.Error("the gateway gets through though nobody may")
	}

	host, _, _ := strings.Cut(w.Registry, ":")
	w.apply("allow.yaml", map[string]string{"Namespace": w.Namespace, "Host": host})
	w.until(10*time.Second, "friend after allow", func() error { return curl("friend") })
	w.until(30*time.Second, "the gateway after allow", gateway)
	if curl("stranger") == nil {
		t.Error("stranger gets through though only friend may")
	}
}

func TestContainerIsRestarted(t *testing.T) {
	w := here(t)
	w.web()
	w.client("client")
	_, _ = w.try("exec", "client", "--", "curl", "-sS", "-X", "POST", "http://web:8080/exit/3") // nobody is left to answer
	w.until(30*time.Second, "the restart", func() error {
		var pod struct {
			Status struct {
				ContainerStatuses []struct {
					RestartCount int
					Ready        bool
					LastState    struct{ Terminated struct{ ExitCode int } }
				}
			}
		}
		w.get("pod/web-0", &pod)
		got := pod.Status.ContainerStatuses
		if len(got) != 1 || got[0].RestartCount != 1 || !got[0].Ready || got[0].LastState.Terminated.ExitCode != 3 {
			return fmt.Errorf("the container's status is %+v", got)
		}
		return nil
	})
	if log := w.kubectl("logs", "--previous", "web-0"); !strings.Contains(log, "exiting with status 3") {
		t.Errorf("the log of the container that ended is %q", log)
	}
}

// TestStrangersAreRefused asks the two servers that pods can reach and that hold everyone's secrets.
func TestStrangersAreRefused(t *testing.T) {
	w := here(t)
	w.client("client")
	host, _, _ := strings.Cut(w.Registry, ":")
	for _, url := range []string{
		"https://" + w.Registry + "/v2/_catalog", "https://" + host + ":6443/api/v1/namespaces", "https://" + host + ":6443/version",
		"https://kubernetes.default.svc.cluster.local/api/v1/secrets",
	} {
		got := w.kubectl("exec", "client", "--", "curl", "-sk", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", url)
		if got != fmt.Sprint(http.StatusUnauthorized) {
			t.Errorf("%s answers %s to a stranger", url, got)
		}
	}
	// What else listens on the host is none of a pod's business.
	all, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = all.Close() }()
	_, port, _ := net.SplitHostPort(all.Addr().String())
	node := w.kubectl("get", "pod", "client", "-o", "jsonpath={.status.hostIP}")
	for _, closed := range []string{host + "/" + port, node + "/10250"} {
		if out, err := w.try("exec", "client", "--", "bash", "-c", "timeout 5 bash -c '</dev/tcp/"+closed+"'"); err == nil {
			t.Errorf("a pod reaches %s: %s", closed, out)
		}
	}
	if out, err := w.try("exec", "client", "--", "ls", "/var/run/secrets/kubernetes.io"); err == nil {
		t.Errorf("the pod has a token: %s", out)
	}
}

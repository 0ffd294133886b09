package cli

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	v3 "github.com/proa-dev/proa/platform/v3"
)

// sshWorld is the ssh server of the world. It lets in who shows a code that was given out and not used, to instance 0 of process p-1, and
// runs what it is told in a shell of this machine.
type sshWorld struct {
	address     string // empty: there is none
	fingerprint string
	banner      string
	refuses     string // why the authorization server gives no code
	disabled    string // why nobody gets in
	features    map[string]bool
	silent      bool // no status comes at the end

	mu     sync.Mutex
	codes  []string
	heard  []string // requests, as they came
	client net.Conn // the last one
}

func (s *sshWorld) link() any {
	if s.address == "" {
		return nil
	}
	return v3.Link{Href: s.address, Meta: map[string]any{"host_key_fingerprint": s.fingerprint, "oauth_client": "ssh-proxy"}}
}

func (s *sshWorld) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, fmt.Sprintf(format, args...))
}

func (s *sshWorld) noted() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.heard, "\n")
}

// sshRoutes are what the API and the authorization server have to do with ssh.
func (w *world) sshRoutes() map[string]http.HandlerFunc {
	w.ssh.features = map[string]bool{"/v3/apps/a-1/features/ssh": true, "/v3/spaces/s-1/features/ssh": true}
	feature := func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			body, _ := io.ReadAll(r.Body)
			w.ssh.features[r.URL.Path] = strings.Contains(string(body), "true")
		}
		w.say(rw, http.StatusOK, map[string]any{"name": "ssh", "enabled": w.ssh.features[r.URL.Path]})
	}
	return map[string]http.HandlerFunc{
		"GET /oauth/authorize": func(rw http.ResponseWriter, r *http.Request) {
			switch q := r.URL.Query(); {
			case r.Header.Get("Authorization") != "bearer "+w.good:
				w.say(rw, http.StatusUnauthorized, map[string]string{"error": "invalid_token", "error_description": "The token is not good."})
			case q.Get("client_id") != "ssh-proxy" || q.Get("response_type") != "code" || w.ssh.refuses != "":
				w.say(rw, http.StatusBadRequest, map[string]string{"error": "invalid_request", "error_description": w.ssh.refuses})
			default:
				code := rand.Text()
				w.ssh.codes = append(w.ssh.codes, code)
				rw.Header().Set("Location", "http://nowhere.invalid/?code="+code+"&state=")
				rw.WriteHeader(http.StatusSeeOther)
			}
		},
		"GET /v3/apps/a-1/ssh_enabled": func(rw http.ResponseWriter, _ *http.Request) {
			w.say(rw, http.StatusOK, v3.SSHEnabled{Enabled: w.ssh.disabled == "", Reason: w.ssh.disabled})
		},
		"PATCH /v3/apps/a-1/features/ssh":   feature,
		"GET /v3/spaces/s-1/features/ssh":   feature,
		"PATCH /v3/spaces/s-1/features/ssh": feature,
	}
}

// withSSH is a world in which the app shop runs, and can be logged in to.
func withSSH(t *testing.T) *world {
	t.Helper()
	w := loggedIn(t)
	w.manifest, w.states = "applications: [{name: shop}]", []string{"RUNNING"}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(signer.PublicKey().Marshal())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	w.ssh.address, w.ssh.fingerprint = l.Addr().String(), base64.RawStdEncoding.EncodeToString(sum[:])
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.ssh.mu.Lock()
			w.ssh.client = conn
			w.ssh.mu.Unlock()
			go w.ssh.serve(conn, signer)
		}
	}()
	return w
}

func (s *sshWorld) inHex(t *testing.T) string {
	t.Helper()
	sum, err := base64.RawStdEncoding.DecodeString(s.fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum)
}

func (s *sshWorld) serve(conn net.Conn, key ssh.Signer) {
	config := &ssh.ServerConfig{
		BannerCallback: func(ssh.ConnMetadata) string { return s.banner },
		PasswordCallback: func(who ssh.ConnMetadata, code []byte) (*ssh.Permissions, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			i := slices.Index(s.codes, string(code))
			if who.User() != "cf:p-1/0" || i < 0 || s.disabled != "" {
				return nil, errors.New("no")
			}
			s.codes = slices.Delete(s.codes, i, i+1)
			return nil, nil
		},
	}
	config.AddHostKey(key)
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go func() {
		for r := range requests {
			s.note("global %s", r.Type)
			_ = r.Reply(false, nil)
		}
	}()
	for c := range channels {
		switch c.ChannelType() {
		case "session":
			go s.session(c)
		case "direct-tcpip":
			go direct(c)
		default:
			_ = c.Reject(ssh.UnknownChannelType, "what is that?")
		}
	}
}

func direct(c ssh.NewChannel) {
	var to struct {
		Host     string
		Port     uint32
		FromHost string
		FromPort uint32
	}
	if err := ssh.Unmarshal(c.ExtraData(), &to); err != nil {
		_ = c.Reject(ssh.ConnectionFailed, "malformed")
		return
	}
	conn, err := net.Dial("tcp", net.JoinHostPort(to.Host, fmt.Sprint(to.Port)))
	if err != nil {
		_ = c.Reject(ssh.ConnectionFailed, "connection refused")
		return
	}
	ch, requests, err := c.Accept()
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	go func() {
		_, _ = io.Copy(conn, ch)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(ch, conn)
	_ = ch.Close()
	_ = conn.Close()
}

func (s *sshWorld) session(c ssh.NewChannel) {
	ch, requests, err := c.Accept()
	if err != nil {
		return
	}
	var cmd *exec.Cmd
	for r := range requests {
		switch r.Type {
		case "pty-req":
			var p struct {
				Term                string
				Columns, Rows, X, Y uint32
				Modes               string
			}
			err := ssh.Unmarshal(r.Payload, &p)
			s.note("pty %s %dx%d %v", p.Term, p.Columns, p.Rows, err)
			_ = r.Reply(true, nil)
		case "window-change":
			var p struct{ Columns, Rows, X, Y uint32 }
			err := ssh.Unmarshal(r.Payload, &p)
			s.note("window %dx%d %v", p.Columns, p.Rows, err)
		case "signal":
			var p struct{ Name string }
			_ = ssh.Unmarshal(r.Payload, &p)
			s.note("signal %s", p.Name)
			if cmd != nil && p.Name == "INT" {
				_ = cmd.Process.Signal(syscall.SIGINT)
			}
		case "shell", "exec":
			if cmd != nil {
				_ = r.Reply(false, nil)
				continue
			}
			cmd = exec.Command("sh")
			if r.Type == "exec" {
				var p struct{ Command string }
				_ = ssh.Unmarshal(r.Payload, &p)
				cmd = exec.Command("sh", "-c", p.Command)
			}
			in, err := start(cmd, ch)
			_ = r.Reply(err == nil, nil) // before anything that the command says
			if err == nil {
				go follow(cmd, ch, in, s.silent)
			}
		default:
			s.note("refused %s", r.Type)
			_ = r.Reply(false, nil)
		}
	}
}

func start(cmd *exec.Cmd, ch ssh.Channel) (io.WriteCloser, error) {
	cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return in, cmd.Start()
}

func follow(cmd *exec.Cmd, ch ssh.Channel, in io.WriteCloser, silent bool) {
	go func() {
		_, _ = io.Copy(in, ch)
		_ = in.Close()
	}()
	_ = cmd.Wait()
	if silent {
		_ = ch.Close()
		return
	}
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(cmd.ProcessState.ExitCode())}))
	_ = ch.Close()
}
